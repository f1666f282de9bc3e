"""The state of next edits, without a language server."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from lsprotocol import types
from tests.lsp.editor import until
from tests.lsp.test_offers import Answers

from lacuna_lsp import next_edits
from lacuna_lsp.client.client_session import ClientSession
from lacuna_lsp.client.news import News
from lacuna_lsp.document import ClientDocument
from lacuna_lsp.next_edits import NextEdits
from lacuna_lsp.offers import Offer
from lacuna_model.next_edit.changes import RecentChange

FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(12))
USES = f"import old_name\n{FILLER}keep(old_name, 1)\n{FILLER}show(old_name)\n"


class Typing:
    """Open documents, of which the first is edited by ranges of lines."""

    def __init__(self, text: str = USES, engine: Answers | None = None) -> None:
        self.document = ClientDocument("file:///a.py", text, 1, "python", "utf-16")
        self.session = ClientSession(print)
        self.open(self.document)
        engine = engine or Answers(news=News("starting"))
        self.edits = NextEdits(engine, self.session)  # type: ignore[arg-type]

    def open(self, document: ClientDocument) -> None:
        self.session.documents[document.uri] = document

    def close(self) -> None:
        del self.session.documents[self.document.uri]
        self.edits.forget(self.document.uri)

    def replace(self, first: int, last: int, text: str) -> None:
        span = types.Range(types.Position(first, 0), types.Position(last, 0))
        self.change(types.TextDocumentContentChangePartial(span, text))

    def change(self, change: types.TextDocumentContentChangeEvent) -> None:
        before = self.document.snapshot()
        made = self.document.apply([change], self.document.version + 1)
        self.edits.edited(before, self.document, made)

    async def offered(self, row: int = 0, *, others: bool = False) -> str:
        shown = await self.edits.offer(self.document, row, others=others)
        return shown.offer.new if shown is not None else ""


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Do something, with the document's URI, while a document is searched."""
    own = next_edits.offers

    def searched(change: RecentChange, uri: str, *given: Any, **more: Any) -> list[Offer]:
        act(uri)
        return own(change, uri, *given, **more)

    monkeypatch.setattr(next_edits, "offers", searched)


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


@pytest.mark.parametrize("event", ["none", "closed", "edited"])
async def test_another_document_that_is_closed_or_edited_meanwhile_gets_no_offer(
    event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing = Typing("from web import old_name\n")
    other = ClientDocument("file:///b.py", "keep(old_name, 1)\n", 1, "python", "utf-16")
    typing.open(other)
    typing.replace(0, 1, "from web import new_name\n")

    def change(uri: str) -> None:
        if uri == other.uri and event == "closed":
            del typing.session.documents[other.uri]
        if uri == other.uri and event == "edited":
            other.apply([types.TextDocumentContentChangeWholeDocument("other()\n")], 2)

    meanwhile(monkeypatch, change)
    assert await typing.offered(others=True) == ("keep(new_name, 1)\n" if event == "none" else "")


async def test_a_closed_document_is_forgotten() -> None:
    typing = Typing()
    typing.replace(0, 1, "import new_name\n")
    typing.edits.forget(typing.document.uri)
    assert await typing.offered() == ""


@pytest.mark.parametrize("again", [False, True], ids=["closed", "opened again with another text"])
async def test_a_document_that_is_closed_while_it_is_searched_gets_no_offer(
    again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing = Typing()

    def close(uri: str) -> None:
        typing.close()
        if again:
            typing.open(ClientDocument("file:///a.py", "other()\n", typing.document.version, "python", "utf-8"))

    meanwhile(monkeypatch, close)
    typing.replace(0, 1, "import new_name\n")
    assert await typing.offered() == ""
    assert typing.edits.counts.offered == 0


async def test_a_document_that_is_closed_while_the_model_writes_gets_no_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_edits, "PAUSE_S", 0.0)
    begun = asyncio.Event()

    async def never_done(*given: Any) -> list[Offer]:
        begun.set()
        return await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(next_edits, "near", never_done)
    typing = Typing(FILLER, Answers())
    typing.replace(0, 1, "import new_name\n")
    asked = asyncio.create_task(typing.offered())
    await begun.wait()
    typing.close()
    assert await asked == ""


async def test_what_the_model_did_not_answer_after_an_acceptance_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(next_edits, "PAUSE_S", 0.0)
    engine = Answers(status="deadline")
    typing = Typing(f"import old_name\n{FILLER}keep(old_name, 1)\n{FILLER}", engine)
    typing.replace(0, 1, "import new_name\n")
    assert await typing.offered() == "keep(new_name, 1)\n"
    typing.replace(13, 14, "keep(new_name, 1)\n")
    await until(lambda: engine.asked)
    await until(lambda: typing.edits._histories[typing.document.uri].ahead is None)
    engine.status, engine.fill = "ok", FILLER.replace("compute_0", "other_0")
    assert await typing.offered(13) == "value_0 = other_0(source_0)\n"
