"""The last resort: fills of a text that is broken whatever they are leave no more errors than were there before."""

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, fill, require
from tests.model.syntax.test_constraint import Samples

from lacuna_model.core.params import Region
from lacuna_model.core.work import Clock
from lacuna_model.syntax import LANGUAGES, SyntaxConstraint
from lacuna_model.syntax.broken.tolerant import tolerant
from lacuna_model.syntax.broken.unfinished import document_of
from lacuna_model.syntax.check.document import Document

MARK = "<|>"


def split(marked: str) -> tuple[bytes, int]:
    return marked.replace(MARK, "").encode(), marked.encode().index(MARK.encode())


def document(name: str, marked: str) -> Document | None:
    text, place = split(marked)
    part = tolerant(text, (place, place), require(name))
    return part.document if part is not None else None


BROKEN = [
    ("javascript", "x = = 3\nlet y = <|>\n", "g(1);", ["(", "g(;", '"']),
    ("java", "class A {\n  A(int a {\n    b = <|>\n  }\n}\n", "c + 1;", ["c);", "(c;"]),
    ("ruby", "def f(a\n  b = <|>\nend\n\ndef g\n  h\nend\n", "a + 1", ["(", "[a"]),
    ("yaml", "a: 1\n<<<<<<< HEAD\nb: <|>\n=======\nb: 3\n>>>>>>> c\n", "2", ["[2", '"2']),
]


@pytest.mark.parametrize(("name", "marked", "typed", "worse"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_fill_may_leave_the_errors_of_the_text_and_add_none(
    name: str, marked: str, typed: str, worse: list[str]
) -> None:
    found = document(name, marked)
    assert found is not None
    assert found.check_fresh([typed.encode()]).valid
    assert not any(found.check_fresh([one.encode()]).valid for one in worse)


@pytest.mark.parametrize(
    ("name", "marked", "typed"),
    [
        *((name, marked, typed) for name, marked, typed, _ in BROKEN),
        ("css", "pre {\n  padding: 0.<|>", "5em;"),
        ("c", "#define A 1\n#define B <|>", "5"),
        ("tsx", "const a = (b) => (\n  <ul>\n    {b.map((c, i) => (\n      <li key<|>", "={i}>"),
    ],
)
def test_what_is_typed_in_a_broken_text_is_delivered(tokens: SmallTokens, name: str, marked: str, typed: str) -> None:
    text, place = split(marked)
    region = Region(place, place, max_tokens=24, max_lines=1, single_line=True)
    constraint = SyntaxConstraint(text, [region], require(name), tokens)
    verdict = fill(constraint, certain([tokens.encode(typed)], tokens.eog_id), [24], tokens.eog_id)
    assert verdict.fills is not None
    assert verdict.fills[0].startswith(typed.rstrip(";"))


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("c", "int f(void) <|>\n  return 1;\n}\n"),
        ("javascript", "items.forEach(<|>\n  x();\n});\n"),
        ("java", "class A {\n  int f(final int a, <|>\n    return a;\n  }\n}\n"),
        ("typescript", "type A<T> =\n  T extends string\n    ? B<<|>\n        T,\n      >\n    : never\n"),
        ("go", "package a\n\nfunc f() {\n\tx := <|>\n}\n"),
        ("json", '{"a": 1 <|>\n"b": 2}\n'),
        ("lua", "if a <|>\n  b()\nend\n"),
    ],
)
def test_nothing_is_tolerated_in_a_text_that_has_a_valid_fill(name: str, marked: str) -> None:
    assert document(name, marked) is None


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES])
def test_nothing_is_tolerated_in_place_of_a_line_of_a_sound_file(samples: Samples, name: str) -> None:
    language, text = samples[name]
    starts = [match.start(1) for match in re.finditer(rb"(?m)^[ \t]*(\S)", text)]
    for gap in Random(name).sample(starts, 4):
        part = tolerant(text[:gap] + text[text.find(b"\n", gap) :], (gap, gap), language)
        assert part is None or part.document is None, text[gap - 80 : gap]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_neutral_fill_of_any_text_is_tolerated(data: st.DataObject) -> None:
    language = data.draw(st.sampled_from(LANGUAGES))
    alphabet = st.sampled_from(["(", ")", "{", "}", "<", ">", "'", '"', "\n", " ", "a", "if", "=", "<<<<<<< a\n", "#"])
    head, tail = (data.draw(st.lists(alphabet, max_size=25).map("".join)).encode() for _ in range(2))
    part = tolerant(head + tail, (len(head), len(head)), language)
    if part is None:
        return
    if part.document is None:
        gap = len(head), len(head)
        whole = document_of(head + tail, [gap], language, Clock(), in_line=True)
        assert whole.check_fresh([part.neutral]).valid
    else:
        assert part.document.check_fresh([part.neutral]).valid
