"""The state of next edits, without a language server."""

import asyncio

import pytest
from lsprotocol import types

from lacuna_lsp.client.news import News
from lacuna_lsp.documents.document import Document
from lacuna_lsp.engine.connection import Engine
from lacuna_lsp.next_edit import next_edits
from lacuna_lsp.next_edit.next_edits import NextEdits
from lacuna_server.wire.settings import Settings

FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(12))
USES = f"import old_name\n{FILLER}keep(old_name, 1)\n{FILLER}show(old_name)\n"


class Typing:
    """One open document, edited by ranges of lines."""

    def __init__(self, text: str = USES) -> None:
        async def nowhere(*arguments: str) -> None:
            raise OSError

        self.document = Document("file:///a.py", text, 1, "python", "utf-16")
        engine = Engine(nowhere, lambda: [], lambda news: None)  # type: ignore[arg-type]
        assert engine.news == News("starting")
        self.edits = NextEdits(engine, lambda: [self.document], Settings)

    def replace(self, first: int, last: int, text: str) -> None:
        span = types.Range(types.Position(first, 0), types.Position(last, 0))
        self.change(types.TextDocumentContentChangePartial(span, text))

    def change(self, change: types.TextDocumentContentChangeEvent) -> None:
        before = self.document.snapshot()
        made = self.document.apply([change], self.document.version + 1)
        self.edits.edited(before, self.document, made)

    async def offered(self, row: int = 0) -> str:
        shown = await self.edits.offer(self.document, row)
        return shown.offer.new if shown is not None else ""


async def test_after_an_acceptance_the_next_place_is_computed_before_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """llama.vim#31."""
    looked = []
    own = next_edits.offers
    monkeypatch.setattr(next_edits, "offers", lambda *given, **more: looked.append(given[2]) or own(*given, **more))
    typing = Typing()
    typing.replace(0, 1, "import new_name\n")
    assert await typing.offered() == "keep(new_name, 1)\n"
    typing.replace(13, 14, "keep(new_name, 1)\n")
    await asyncio.sleep(0.5)
    assert looked[-1] == typing.document.text.decode()
    count = len(looked)
    assert await typing.offered(13) == "show(new_name)\n"
    assert len(looked) == count
    assert typing.edits.counts.accepted == 1


async def test_a_client_that_sends_whole_texts_gets_the_same_offers() -> None:
    typing = Typing(USES + FILLER * 10)
    typing.change(types.TextDocumentContentChangeWholeDocument((USES + FILLER * 10).replace("old", "new", 1)))
    assert await typing.offered() == "keep(new_name, 1)\n"


async def test_an_edit_elsewhere_begins_another_change() -> None:
    typing = Typing()
    typing.replace(0, 1, "import new_name\n")
    typing.replace(13, 14, "# a remark\n")
    assert await typing.offered(13) == ""


async def test_a_change_that_is_taken_back_is_followed_nowhere() -> None:
    typing = Typing()
    typing.replace(0, 1, "import new_name\n")
    typing.replace(0, 1, "import old_name\n")
    assert await typing.offered() == ""


async def test_a_document_that_changes_meanwhile_gets_no_offer() -> None:
    typing = Typing()
    typing.replace(0, 1, "import new_name\n")
    asked = asyncio.create_task(typing.offered())
    await asyncio.sleep(0)
    typing.replace(5, 6, "")
    assert await asked == ""


async def test_a_closed_document_is_forgotten() -> None:
    typing = Typing()
    typing.replace(0, 1, "import new_name\n")
    typing.edits.forget(typing.document.uri)
    assert await typing.offered() == ""
