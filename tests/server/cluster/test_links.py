import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from lacuna_cluster import links
from lacuna_cluster.links import (
    LOADS,
    Answered,
    Ask,
    Knock,
    Listener,
    Loads,
    Lost,
    ReplicaAddress,
    Reply,
    Shown,
)
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region, Snapshot
from lacuna_server.wire import frames
from lacuna_server.wire.frames import LENGTH, Submission
from lacuna_server.worker.scheduler import Finished


def test_own_requests_count_at_once_and_others_as_they_are_reported() -> None:
    loads = Loads()
    with loads.one_more("a"):
        with loads.one_more("a"):
            loads.reported("a", 5)
            assert loads.of("a") == 5
        assert loads.of("a") == 4
        loads.reported("a", 0)  # an older figure than what is under way
        assert (loads.of("a"), loads.of("b")) == (1, 0)


def test_a_replica_is_lost_for_a_while_or_until_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads()
    assert not loads.is_lost("a")
    loads.lost("a")
    loads.lost("b")
    loads.found("b")
    assert (loads.is_lost("a"), loads.is_lost("b")) == (True, False)
    monkeypatch.setattr(links, "LOST_S", 0.0)
    assert not loads.is_lost("a")


def ask(text: str) -> Ask:
    return Ask("m", Submission(InfillRequest(text, (Region(0, 0),)), "s", "d", snapshots=True))


class Replica:
    """Answers a number with as many steps, ``for ever`` never; anything else is a fault. Counts what was stopped."""

    def __init__(self) -> None:
        self.stopped = 0

    async def answer(self, ask: Ask) -> AsyncGenerator[Reply]:
        text = ask.submission.request.text
        try:
            for step in range(10**9 if text == "for ever" else int(text)):
                yield Shown(Snapshot(step, (text,), ()))
                await asyncio.sleep(0.001)
            yield Answered(InfillResult("ok", (text,), FillStats()), Finished("ok", 0.0))
        except (GeneratorExit, asyncio.CancelledError):
            self.stopped += 1
            raise


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Replica, Listener, ReplicaAddress]]:
    replica = Replica()
    listener = Listener(replica.answer)
    where = ReplicaAddress("r", "127.0.0.1", await listener.open("127.0.0.1"), listener.secret)
    try:
        yield replica, listener, where
    finally:
        await listener.close()


async def answers(where: ReplicaAddress, text: str) -> list[Reply]:
    return [reply async for reply in links.ask(where, ask(text))]


async def test_many_questions_at_once_get_their_own_replies() -> None:
    async with linked() as (_, _, where):
        replies = await asyncio.gather(*(answers(where, str(number)) for number in range(20)))
        for number, heard in enumerate(replies):
            assert isinstance(heard[-1], Answered)
            assert heard[-1].result.fills == (str(number),)
            steps = [reply.snapshot.step for reply in heard if isinstance(reply, Shown)]
            assert steps == list(range(number))
        assert LOADS.of("r") == 0


async def test_leaving_the_replies_stops_the_work() -> None:
    async with linked() as (replica, _, where):
        async with aclosing(links.ask(where, ask("for ever"))) as replies:
            async for _ in replies:
                assert LOADS.of("r") == 1
                break
        async with asyncio.timeout(10):
            while not replica.stopped:
                await asyncio.sleep(0.01)
        assert len(await answers(where, "3")) == 4


async def test_a_replica_that_ends_ends_every_question_and_another_is_asked() -> None:
    async with linked() as (replica, listener, where):
        waiting = [asyncio.create_task(answers(where, "for ever")) for _ in range(3)]
        await answers(where, "3")
        await listener.close()
        assert all(isinstance(end, Lost) for end in await asyncio.gather(*waiting, return_exceptions=True))
        assert replica.stopped == 3
        with pytest.raises(Lost):
            await answers(where, "1")
        second = Listener(replica.answer)
        again = ReplicaAddress("r", "127.0.0.1", await second.open("127.0.0.1"), second.secret)
        assert len(await answers(again, "2")) == 3
        await second.close()


@pytest.mark.parametrize("first", [Knock("wrong"), Knock("fälsch"), ask("1"), None])
async def test_who_does_not_know_the_secret_is_not_answered(
    first: Knock | Ask | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "KNOCK_S", 0.1)
    async with linked() as (_, listener, where):
        reader, writer = await asyncio.open_connection(where.host, where.port)
        if first is not None:
            writer.write(frames.encode(first) + frames.encode(ask("1")))  # type: ignore[arg-type]
        async with asyncio.timeout(10):
            assert await reader.read() == b""
            while listener._visits:  # nothing is kept of it
                await asyncio.sleep(0.01)
        writer.close()


@pytest.mark.parametrize(
    "sent", [LENGTH.pack(2**32 - 1), LENGTH.pack(2000) + b"x" * 2000, LENGTH.pack(3) + b"\xc1\xc1\xc1"]
)
async def test_a_stranger_is_sent_away_at_its_first_bytes(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A length of four gigabytes must not be waited for, nor kept."""
    monkeypatch.setattr(links, "KNOCK_S", 1000.0)
    async with linked() as (_, _, where):
        reader, writer = await asyncio.open_connection(where.host, where.port)
        writer.write(sent)
        async with asyncio.timeout(30):
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
