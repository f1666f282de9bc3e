"""The part of a region that is rewritten, and its prompt: to the letter that of Sweep's and of Zed's models."""

from pathlib import Path

import pytest
from tests.model import tiny
from tests.model.fim import tiny_fim
from tests.model.llama import shapes

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FollowChanges, InfillRequest, PastChange, Region, Snippet
from lacuna_model.editing.prompts import LINES_BEFORE, MAX_LINES, EditedPart, window_layout
from lacuna_model.engine import Engine
from lacuna_model.llama.loading import LoadedLlama, load_llama

TEXT = "import os\nuse(os)\n\ndef f():\n    return os\n"


def prompt(text: str, region: Region, *changes: PastChange, snippets: tuple[Snippet, ...] = ()) -> tuple[str, str]:
    """The prompt with ``|`` for the token between files, and the draft."""
    model, data = tiny_fim.loaded(), text.encode()
    part = EditedPart.of(data, region)
    asked = InfillRequest(text, (region,), path="/src/a.py", snippets=snippets)
    layout = window_layout(model, part, asked, changes)
    assert layout.answering is not None
    ids = [*layout.segments[0][0:], layout.answering.after]
    tokens = [b"|" if i == model.fim.file_sep else model.tokenizer.token_bytes(i) for i in ids]
    return b"".join(tokens).decode(), b"".join(map(model.tokenizer.token_bytes, layout.olds[0])).decode()


def test_the_sections_are_changes_and_the_window_before_and_after_them() -> None:
    change = PastChange("/src/a.py", "import sys\nuse(os)\n", "import os\nuse(os)")
    found, draft = prompt(TEXT, Region(10, 18), change, snippets=(Snippet("b.py", "help = 1\n"),))
    assert found == (
        "|b.py\nhelp = 1\n"
        "|a.py.diff\noriginal:\nimport sys\nuse(os)\nupdated:\nimport os\nuse(os)\n"
        "|original/a.py\nimport sys\nuse(os)\n"
        "|current/a.py\nimport os\nuse(os)\n"
        "|updated/a.py\nimport os\n"
    )
    assert draft == "use(os)\n"


@pytest.mark.parametrize(
    ("changes", "before"),
    [
        ([PastChange("/src/b.py", "use(sys)", "use(os)")], "use(os)\n"),  # of another file
        ([PastChange("a.py", "use(sys)", "use(os)"), PastChange("a.py", "x", "y")], "use(os)\n"),  # not the last one
        ([PastChange("a.py", "x", "y"), PastChange("a.py", "use(sys)", "use(os)")], "use(sys)\n"),
    ],
)
def test_the_lines_before_are_those_before_the_last_change_of_the_file(changes: list[PastChange], before: str) -> None:
    found, _ = prompt("use(os)\n", Region(0, 8), *changes)
    assert f"|original/a.py\n{before}|current/a.py\nuse(os)\n" in found


def test_the_last_character_of_an_indentation_is_written_with_the_word_after_it() -> None:
    start = TEXT.index("    return")
    found, draft = prompt(TEXT, Region(start, len(TEXT)))
    assert found.endswith("def f():\n   ")
    assert draft == " return os\n"


def test_lines_far_above_are_not_read() -> None:
    text = "".join(f"v{n}\n" for n in range(40)) + "last\n"
    found, _ = prompt(text, Region(len(text) - 5, len(text)))
    assert f"v{40 - LINES_BEFORE}\n" in found
    assert f"v{39 - LINES_BEFORE}\n" not in found


@pytest.fixture
def zeta(tmp_path: Path, cache: Path) -> LoadedLlama:
    """A random model with Seed-Coder's tokens, by its name Zeta 2.1."""
    names = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<filename>", "<|b|>")
    path = tmp_path / "zeta-2.1.Q4_K_M.gguf"
    shapes.write(path, "granite", tokens=[*tiny.VOCABULARY.tokens, *names])
    return load_llama(path, path.name, threads=1)


def asked_of_zeta(text: str, region: Region, *changes: PastChange, snippets: tuple[Snippet, ...] = ()) -> InfillRequest:
    return InfillRequest(text, (region,), FollowChanges(changes), path="src/a.py", snippets=snippets)


def test_zeta_reads_the_text_below_the_changes_and_the_marked_lines(zeta: LoadedLlama) -> None:
    """The order of the card of zed-industries/zeta-2.1; the markers have no line ends of their own."""
    change = PastChange("/src/a.py", "import sys\nuse(os)\n", "import os\nuse(os)")
    region = Region(0, 18)
    part = EditedPart.of(TEXT.encode(), region)
    request = asked_of_zeta(TEXT, region, snippets=(Snippet("b.py", "help = 1\n"),))
    layout = window_layout(zeta, part, request, [change])
    assert layout.answering is not None
    ids = [*layout.segments[0], layout.answering.after]
    names = zeta.tokenizer.vocabulary.tokens
    special = zeta.tokenizer.vocabulary.special_ids | {names.index("<filename>")}
    written = b"".join(names[i].encode() if i in special else zeta.tokenizer.token_bytes(i) for i in ids).decode()
    assert written == (
        "<[fim-suffix]>\ndef f():\n    return os\n"
        "<[fim-prefix]><filename>b.py\nhelp = 1\n\n"
        "<filename>edit_history\n--- a/a.py\n+++ b/a.py\n-import sys\n+import os\n use(os)\n\n"
        "<filename>src/a.py\n<|marker_1|>import os<|user_cursor|>\nuse(os)\n<|marker_2|>\n"
        "<[fim-middle]><|marker_1|>"
    )
    assert b"".join(map(zeta.tokenizer.token_bytes, layout.olds[0])) == b"import os\nuse(os)\n"


def test_zeta_rewrites_lines_and_says_that_it_follows_edits(zeta: LoadedLlama) -> None:
    engine = Engine(zeta)
    assert engine.follows_edits
    text = "a = 1\nb = 2\n"
    result = engine.fill(asked_of_zeta(text, Region(6, 12, max_tokens=20), PastChange("a.py", "c", "a = 1")))
    assert result.status in ("ok", "no_valid_fill")
    assert "marker" not in result.fills[0]


def test_without_its_tokens_zeta_is_refused_by_one_line(tmp_path: Path, cache: Path) -> None:
    model = load_llama(shapes.write(tmp_path / "zeta-2.1.gguf", "granite"), "zeta", threads=1)
    with pytest.raises(RequestError, match="has not the tokens of Zeta's format"):
        Engine(model).fill(asked_of_zeta("a = 1\n", Region(0, 6)))


def part_of(before: str, region: str, after: str = "") -> EditedPart:
    text = (before + region + after).encode()
    start = len(before.encode())
    return EditedPart.of(text, Region(start, start + len(region.encode())))


def test_blank_lines_and_the_first_indentation_stay_outside() -> None:
    part = part_of("class A:\n", "\n    def b(self):\n        pass\n\n", "x\n")
    assert (part.before, part.after, part.indentation) == ("\n    ", "\n", "    ")
    assert part.text == "def b(self):\n        pass\n"
    assert part.old == "    def b(self):\n        pass\n"


def test_line_ends_are_those_of_the_document() -> None:
    part = part_of("", "a = 1\r\nb = 2\r\n", "c\r\n")
    assert part.old == "a = 1\nb = 2\n"
    assert part.whole(part.written("a = 3\nb = 2\n")) == "a = 3\r\nb = 2\r\n"
    part = part_of("", "a = 1\r\nb = 2\n")  # mixed ones: the last one stays
    assert part.whole(part.written("a = 3\nb = 2")) == "a = 3\r\nb = 2\n"


@pytest.mark.parametrize("ahead", ["", "\ufeff"])
def test_a_byte_order_mark_stays_whether_the_region_has_it_or_not(ahead: str) -> None:
    within = "\ufeff".removeprefix(ahead)
    part = part_of(ahead, f"{within}  a = 1\n", "b = 2\n")
    assert (part.before, part.indentation, part.old, part.text) == (f"{within}  ", "  ", "  a = 1\n", "a = 1\n")
    assert part.whole(part.written("a = 3\n")) == f"{within}  a = 3\n"
    with pytest.raises(RequestError, match="nothing to rewrite"):
        part_of(ahead, f"{within}\n", "b = 2\n")
    part = part_of("b = 2\n", "\ufeffa = 1\n")  # further on it is no mark
    assert (part.before, part.old) == ("", "\ufeffa = 1\n")


def test_a_region_within_a_line_is_refused() -> None:
    with pytest.raises(RequestError, match="whole lines"):
        part_of("x = ", "a\n")
    with pytest.raises(RequestError, match="whole lines"):
        part_of("", "x = ", "a\n")


def test_a_region_of_too_many_lines_is_refused_with_the_limit() -> None:
    with pytest.raises(RequestError, match=f"5,001 lines; at most {MAX_LINES}"):
        part_of("", "x = 1\n" * 5000)
    assert part_of("", "x = 1\n" * MAX_LINES).old
