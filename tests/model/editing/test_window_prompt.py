"""The prompt of a rewritten region, to the letter that of Sweep's models."""

import pytest
from tests.model.fim import tiny_fim

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, Region, Snippet
from lacuna_model.editing.part import MAX_TOKENS, EditedPart
from lacuna_model.editing.window_prompt import LINES_BEFORE, window_layout
from lacuna_model.next_edit.blocks import as_block

TEXT = "import os\nuse(os)\n\ndef f():\n    return os\n"


def prompt(text: str, region: Region, *snippets: Snippet) -> tuple[str, str]:
    """The prompt with ``|`` for the token between files, and the draft."""
    model, data = tiny_fim.loaded(), text.encode()
    part = EditedPart.of(data, region)
    asked = InfillRequest(text, (region,), path="/src/a.py", snippets=snippets)
    layout = window_layout(model, part, data, part.narrowed(region), asked)
    assert layout.answering is not None
    ids = [*layout.segments[0][0:], layout.answering.after]
    tokens = [b"|" if i == model.fim.file_sep else model.tokenizer.token_bytes(i) for i in ids]
    return b"".join(tokens).decode(), b"".join(map(model.tokenizer.token_bytes, layout.olds[0])).decode()


def test_the_sections_are_changes_and_the_window_before_and_after_them() -> None:
    change = as_block("a.py", "import sys\nuse(os)", "import os\nuse(os)")
    found, draft = prompt(TEXT, Region(10, 18, rewrite=True), Snippet("b.py", "help = 1\n"), change)
    assert found == (
        "|b.py\nhelp = 1\n"
        "|a.py.diff\noriginal:\nimport sys\nuse(os)\nupdated:\nimport os\nuse(os)\n"
        "|original/a.py\nimport sys\nuse(os)\n"
        "|current/a.py\nimport os\nuse(os)\n"
        "|updated/a.py\nimport os\n"
    )
    assert draft == "use(os)\n"


def test_the_last_character_of_an_indentation_is_written_with_the_word_after_it() -> None:
    start = TEXT.index("    return")
    found, draft = prompt(TEXT, Region(start, len(TEXT), rewrite=True))
    assert found.endswith("def f():\n   ")
    assert draft == " return os\n"


def test_lines_far_above_are_not_read() -> None:
    text = "".join(f"v{n}\n" for n in range(40)) + "last\n"
    found, _ = prompt(text, Region(len(text) - 5, len(text), rewrite=True))
    assert f"v{40 - LINES_BEFORE}\n" in found
    assert f"v{39 - LINES_BEFORE}\n" not in found


def test_a_long_part_is_refused() -> None:
    text = ("x" * 60 + "\n") * 200
    with pytest.raises(RequestError, match=f"at most {MAX_TOKENS:,} are rewritten"):
        prompt(text, Region(0, len(text), rewrite=True))
