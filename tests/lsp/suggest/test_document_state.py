"""One document's state: the fill under way, and which suggestions are kept."""

import asyncio

import pytest

from lacuna_lsp.document import ClientDocument
from lacuna_lsp.suggest import document_state
from lacuna_lsp.suggest.document_state import KEPT, DocumentState, State
from lacuna_lsp.suggest.suggestion import Suggestion
from lacuna_server.wire.protocol import Edit

HERE = Edit(0, 0, "")


def opened() -> DocumentState:
    return DocumentState(ClientDocument("file:///work/code.py", "", 1, "python", "utf-8"))


async def slow(answer: str) -> str:
    await asyncio.sleep(60)
    return answer


def nothing() -> None:
    """Nothing happens at the end of a request."""


async def begun(state: DocumentState, answer: str = "old") -> "asyncio.Future[str | None]":
    waiting = asyncio.ensure_future(state.newest(slow(answer), nothing))
    await asyncio.sleep(0)
    assert state.state is State.WAITING
    return waiting


async def suggested(state: DocumentState, *texts: str) -> Suggestion:
    """A suggestion whose fill has ended with these texts."""
    suggestion = Suggestion(HERE, b"", b"", several=False)

    async def fill() -> None:
        suggestion.keep(texts)

    state.start(suggestion, fill())
    assert await suggestion.reaches(HERE)
    return suggestion


async def test_a_fill_that_no_request_waits_for_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_state, "LEFT_S", 0.05)
    state = opened()
    waiting = await begun(state)
    suggestion = Suggestion(HERE, b"", b"", several=False)

    async def fill() -> None:
        await asyncio.sleep(60)

    state.start(suggestion, fill())
    state.edited([Edit(0, 0, "t")])
    assert await waiting is None
    assert state.state is State.WRITING
    again = await begun(state)  # a request that may wait for it keeps it
    await asyncio.sleep(0.2)
    assert state.fill is suggestion
    state.edited([Edit(1, 1, "o")])
    assert await again is None
    async with asyncio.timeout(30):
        while state.state is State.WRITING:
            await asyncio.sleep(0.01)
    assert state.fill is None
    assert state.state is State.IDLE


async def test_the_newest_suggestion_is_found_and_old_ones_are_dropped() -> None:
    state = opened()
    first = await suggested(state, "first")
    second = await suggested(state, "second")
    match = state.find(HERE)
    assert match is not None
    assert match.suggestion is second
    assert state.of(first.id) is first
    for number in range(KEPT - 1):
        await suggested(state, f"{number}")
    assert state.of(first.id) is None
    assert state.of(second.id) is second
