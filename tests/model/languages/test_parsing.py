"""Every parse ends, whatever the text. This matters because the parser holds the interpreter's lock."""

import resource
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Query

from lacuna_model.core import work
from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.languages.parsing import Parser, UnparsableError, captured
from lacuna_model.languages.registry import require_language
from lacuna_model.snippets import sources
from lacuna_model.syntax import LANGUAGES, language_for

ENDLESS = b"<a {{b:>c:d(e f)"
MAX_SECONDS = 0.2  # of work, for a parse of a small text
GRAMMARS = sorted({language.name: language for language in LANGUAGES}.values(), key=lambda language: language.name)


def parser(name: str) -> Parser:
    language = language_for(name=name)
    assert language is not None
    return language.parser()


def test_a_text_that_the_parser_never_finishes_is_refused_and_at_once_the_second_time() -> None:
    text = b"const title = 1;\nexport const Box = () => " + ENDLESS
    works = []
    for number in range(2):
        tsx, before = parser("tsx"), work.spent()
        if number:
            tsx._parser = None  # type: ignore[assignment]  # it is not asked again
        with pytest.raises(UnparsableError, match="begins with 'const title = 1;'"):
            tsx.parse(text)
        works.append(work.spent() - before)
    assert works[0] == works[1]  # counted again, so that a search does not depend on what was asked before


@pytest.mark.parametrize(
    ("name", "begin", "level"),
    [
        ("java", b"class A { void f() { ", b"A<"),
        ("java", b"", b"=>a("),
        ("csharp", b"int a;\n" * 600, b"a<b"),
        ("cpp", b"", b"a(=?<a>"),
        ("c", b"", b"&match =>"),
        ("rust", b"", b"=>a("),
        ("typescript", b"a;\n" * 3_000, b"a=,"),
    ],
)
def test_a_text_whose_end_takes_seconds_and_gigabytes_is_refused(name: str, begin: bytes, level: bytes) -> None:
    whole = begin + level * (50_000 // len(level))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for text, old in ((whole, None), (whole + b" ", parser(name).parse(b""))):
        with pytest.raises(UnparsableError, match="does not come to an end"):
            parser(name).parse(text, old)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", b"[" * 3_000 + b"]" * 3_000),
        ("javascript", b"x = " + b"!" * 5_000 + b"1;"),
        ("rust", b"a" + b"<b" * 5_000),
    ],
    ids=["brackets", "operators", "chain"],
)
def test_a_text_that_is_nested_too_deeply_is_refused(name: str, text: bytes) -> None:
    with pytest.raises(UnparsableError, match="nested too deeply"):
        parser(name).parse(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", b"[" + b"1," * 100_000 + b"1]"),
        ("json", b"[" * 400 + b"]" * 400),
        ("typescript", b"type A = 1" + b' | "b"' * 1_500 + b";\n"),
        ("javascript", b"x = 'a'" + b" + 'b'" * 1_500 + b";\n"),
        ("c", b"int f(void) { " + b"if (a) b(); else " * 400 + b"c(); }"),
    ],
    ids=["numbers", "brackets", "union", "chain", "branches"],
)
def test_what_a_program_may_have_written_is_read(name: str, text: bytes) -> None:
    assert not parser(name).parse(text).root_node.has_error


def test_a_query_that_keeps_too_much_in_mind_is_ended() -> None:
    json = require_language("json")
    root = json.parser().parse(b"[" + b"1," * 100 + b"1]").root_node
    with pytest.raises(UnparsableError):
        captured(Query(json.grammar(), "(array (number) @a (number) @b (string) @c)"), root, 0, root.end_byte)


@pytest.mark.parametrize(
    "text",
    [
        b"- " * 3_000,
        b"? " * 3_000,
        b"".join(b" " * level + b"a:\n" for level in range(600)),
        b"".join(b" " * level + b"- \n" for level in range(600)),
        b"- " * 45 + b"a:\n" + b"".join(b" " * (91 + level) + b"a:\n" for level in range(300)),
        b"key: value\n" * 40_000,
    ],
    ids=["sequences", "keys", "mappings", "lines", "both", "rows"],
)
def test_a_text_that_the_scanner_cannot_hold_is_refused_before_it_writes_outside_of_its_memory(text: bytes) -> None:
    with pytest.raises(UnparsableError):
        parser("yaml").parse(text)


@pytest.mark.parametrize(
    "text",
    [
        b"- " * 90 + b"x\n",
        b"".join(b" " * level + b"a:\n" for level in range(90)),
        b"a: " + b"word - or: not " * 40 + b"\n",
        (b" " * 60 + b"# note\n" + b"a:\n  - b: c\n") * 3_000,
        b"key: value\n" * 30_000,
    ],
    ids=["sequences", "mappings", "prose", "notes", "rows"],
)
def test_a_text_that_it_can_hold_is_read(text: bytes) -> None:
    assert parser("yaml").parse(text).root_node.end_byte > 0


@pytest.mark.parametrize("language", GRAMMARS, ids=lambda language: language.name)
@settings(max_examples=25)
@given(data=st.data())
def test_a_parse_of_any_bytes_in_any_grammar_ends(language, data) -> None:  # type: ignore[no-untyped-def]
    marks = st.sampled_from([b"<", b">", b"{", b"}", b"(", b")", b"[", b"]", b":", b";", b'"', b"'", b"`", b"\n", b"$"])
    words = st.sampled_from(
        [b"a", b" ", b"class ", b"def ", b"if ", b"=> ", b"<a ", b"</a>", b"#", b"//", b"/*", b"<<E"]
    )
    text = b"".join(data.draw(st.lists(st.one_of(marks, words, st.binary(max_size=3)), max_size=40)))
    most = work.mark(MAX_SECONDS)
    with suppress(UnparsableError):
        language.parser().parse(text)
    assert not work.reached(most)


def test_a_file_that_cannot_be_parsed_is_filled_unchecked_and_the_message_says_so(model: LoadedFim) -> None:
    text = "const size = ;\n\nexport const Box = () => " + ENDLESS.decode() + "\n"
    request = InfillRequest(text, (Region(13, 13, max_tokens=4),), path="hang.tsx")
    result = Engine(model).fill(request)
    assert result.status == "ok"
    assert not result.stats.constrained
    assert result.message.startswith("the syntax is not checked: the grammar does not come to an end")


def test_a_file_that_cannot_be_parsed_has_no_definitions_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sources._say.cache_clear()
    for _ in range(2):
        read = sources.read("src/hang.tsx", "function f() {}\n" + ENDLESS.decode())
        assert read.definitions == ()
        assert read.chunks
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["src/hang.tsx"]
    assert Path(read.path).name == "hang.tsx"


def test_parses_keep_nothing_of_the_texts_that_they_have_read() -> None:
    python, text = parser("python"), b"x = 1\n" * 5000
    python.parse(text)
    tracemalloc.start()
    try:
        for _ in range(10):
            python.parse(text)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < len(text)
    assert text == b"x = 1\n" * 5000
