import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lsp.editor import Editor
from tests.lsp.service import Daemon

from lacuna_lsp.suggest.items import Unit, first_part


@given(text=st.text(), unit=st.sampled_from(["word", "line"]))
def test_the_parts_of_a_text_add_up_to_the_text(text: str, unit: Unit) -> None:
    taken = ""
    while taken != text:
        part = first_part(text[len(taken) :], unit)
        assert part
        taken += part


async def test_a_client_can_request_the_next_part(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize(ready=False)
    assert await editor.command("lacuna.nextPart", {"text": " a + b", "unit": "word"}) == {"text": " a"}
    with pytest.raises(Exception, match="bad argument"):
        await editor.command("lacuna.nextPart", {"text": "a", "unit": "page"})


@given(text=st.text(st.sampled_from("eu\u0301\u0308 .-!\u20e3कि\u200dष्")), unit=st.sampled_from(["word", "line"]))
def test_no_part_begins_with_a_combining_mark(text: str, unit: Unit) -> None:
    part = first_part(text, unit)
    rest = text[len(part) :]
    assert not rest or not unicodedata.category(rest[0]).startswith("M")
