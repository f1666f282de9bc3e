import asyncio
import itertools
import json
import socket
import time
from pathlib import Path

import pytest
from tests.server.conftest import Front
from tests.server.live_service import Talk, infill, live, opened, talk
from tests.server.scripted.scripted_engine import expected
from websockets.exceptions import ConnectionClosed

from lacuna_model.core.params import DecodeOptions
from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import (
    JSON,
    MSGPACK,
    Cancel,
    Change,
    Close,
    Edit,
    Error,
    GetStatus,
    Goodbye,
    Hello,
    Progress,
    Result,
    Status,
    Step,
    Welcome,
)

pytestmark = pytest.mark.usefixtures("scripted_engine")
ENDLESS = 100_000


async def until_idle(talking: Talk) -> None:
    """Wait until the worker has nothing left to do."""
    async with asyncio.timeout(30):
        while True:
            await talking.send(GetStatus())
            status = await talking.receive(Status)
            if status.queued == status.running == 0:
                return
            await asyncio.sleep(0.01)


async def ask_for_ever(talking: Talk) -> None:
    while True:
        await talking.connection.send("no message")


async def refusal(talking: Talk) -> tuple[str, str, str]:
    error = await talking.receive(Error)
    return error.code, error.id, error.uri


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
async def test_a_document_is_opened_changed_and_filled(subprotocol: str, front: Front) -> None:
    async with talk(front.address, subprotocol=subprotocol) as (talking, welcome):
        assert welcome.protocol == protocol.VERSION
        assert talking.connection.subprotocol == subprotocol
        await talking.send(
            opened("a", "größe"), Change("a", 2, (Edit(0, 1, "G"),)), infill("1", "a", version=2, at=(0, 4))
        )
        assert (await talking.receive(Result)).result.fills == (expected("Größe", 0), expected("Größe", 4))


async def test_a_change_of_too_many_edits_is_refused(front: Front) -> None:
    async with talk(front.address) as (talking, _):
        edits = tuple(Edit(at, at + 1, "b") for at in range(1001))
        await talking.send(opened("a", "a" * 2001), Change("a", 2, edits[1:]), infill("1", "a", version=2))
        assert (await talking.receive(Result)).result.fills == (expected("a" + "b" * 1000 + "a" * 1000, 0),)
        await talking.send(Change("a", 3, edits), infill("2", "a", version=3))
        assert await refusal(talking) == ("bad_request", "", "a")
        assert await refusal(talking) == ("unknown_document", "2", "a")


async def test_what_was_read_stays_for_a_client_that_connects_again() -> None:
    names = []
    async with live() as (_, address):
        for session in ("secret", "secret", "another", "", ""):
            async with talk(address, session=session) as (talking, _):
                await talking.send(opened("a", "NAME"), infill("1", "a"))
                names.append((await talking.receive(Result)).result.fills)
    assert names[0] == names[1]
    assert len(set(names)) == 4


async def test_steps_are_streamed_if_they_are_requested(front: Front) -> None:
    async with talk(front.address) as (talking, _):
        await talking.send(opened("a"), infill("1", "a", steps=4, step_s=0.05, snapshots=True))
        heard = await talking.receive_all_until(Result)
        steps = [message.snapshot.step for message in heard if isinstance(message, Step)]
        assert steps == [1, 2, 3, 4]
        assert any(isinstance(message, Progress) and message.state == "running" for message in heard)
        await talking.send(infill("2", "a", steps=4))
        assert not any(isinstance(message, Step) for message in await talking.receive_all_until(Result))


async def test_cancelled_work_stops_within_one_step(front: Front) -> None:
    async with talk(front.address) as (talking, _):
        await talking.send(opened("a"), infill("1", "a", steps=ENDLESS, step_s=0.2, snapshots=True))
        await talking.receive(Step)
        await talking.send(Cancel("1"))
        assert await refusal(talking) == ("cancelled", "1", "a")
        seen = len(front.count.read_text())
        await until_idle(talking)
        assert len(front.count.read_text()) <= seen + 1  # the step that was already running
        await talking.send(Cancel("1"))
        assert await refusal(talking) == ("unknown_request", "1", "")


async def test_a_newer_request_supersedes_the_older_one_or_waits_for_it(front: Front) -> None:
    async with talk(front.address) as (talking, _):
        await talking.send(opened("a"), opened("b"))
        await talking.send(infill("old", "a", steps=ENDLESS, step_s=0.01), infill("other", "b", steps=3, step_s=0.01))
        await talking.send(infill("new", "a", steps=3, step_s=0.01))
        assert await refusal(talking) == ("superseded", "old", "a")
        await talking.send(infill("patient", "a", supersede=False))
        answered = [(await talking.receive(Result)).id for _ in range(3)]
        assert sorted(answered) == ["new", "other", "patient"]
        assert answered.index("new") < answered.index("patient")


async def test_the_request_of_a_client_that_is_killed_in_a_stream_ends() -> None:
    async with live() as (service, address), talk(address) as (other, _):
        async with talk(address) as (talking, _):
            await talking.send(opened("a"), infill("1", "a", steps=ENDLESS, step_s=0.01, snapshots=True))
            await talking.receive(Step)
            transport = talking.connection.transport
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            transport.abort()  # a reset without a closing handshake
        await until_idle(other)
        assert service.status().sessions == 1


async def test_a_half_open_connection_is_noticed_and_its_request_ends() -> None:
    async with (
        live(ping_interval_s=0.1, ping_timeout_s=0.1) as (service, address),
        talk(address) as (other, _),
        talk(address) as (talking, _),
    ):
        await talking.send(opened("a"), infill("1", "a", steps=ENDLESS, step_s=0.01))
        await talking.receive(Progress)
        talking.connection.transport.pause_reading()  # like a lost client: it sends no pong and no close
        await until_idle(other)
        assert service.status().sessions == 1
        talking.connection.transport.resume_reading()


async def test_a_slow_reader_loses_no_answer(front: Front) -> None:
    async with talk(front.address) as (talking, _):
        await talking.send(*(opened(f"doc{i}", "COPY" * 50_000) for i in range(12)))
        talking.connection.transport.pause_reading()
        await talking.send(*(infill(str(i), f"doc{i}", steps=20, snapshots=True) for i in range(12)))
        async with talk(front.address) as (other, _):
            await until_idle(other)
        talking.connection.transport.resume_reading()
        results = [await talking.receive(Result) for _ in range(12)]
        assert {answer.id for answer in results} == {str(i) for i in range(12)}


async def test_a_client_that_never_reads_its_answers_is_disconnected() -> None:
    async with (
        live(send_timeout_s=0.2) as (service, address),
        talk(address) as (other, _),
        talk(address, ping_interval=None, close_timeout=0.1) as (talking, _),
    ):
        talking.connection.transport.pause_reading()
        await talking.send(*(opened(f"doc{i}", "COPY" * 375_000) for i in range(12)))
        await talking.send(*(infill(str(i), f"doc{i}") for i in range(12)))
        async with asyncio.timeout(30):
            while service.status().sessions > 1:
                await asyncio.sleep(0.01)
        await until_idle(other)


async def test_a_client_that_keeps_sending_and_never_reads_is_disconnected() -> None:
    async with (
        live(max_message_bytes=1000) as (service, address),
        talk(address) as (other, _),
        talk(address, ping_interval=None, close_timeout=0.1) as (talking, _),
    ):
        talking.connection.transport.pause_reading()
        with pytest.raises(ConnectionClosed):
            await ask_for_ever(talking)
        talking.connection.transport.resume_reading()
        await until_idle(other)
        assert service.status().sessions == 1


async def test_a_stuck_worker_is_restarted() -> None:
    async with live(worker_timeout_s=0.5) as (_, address), talk(address) as (talking, _):
        await talking.send(opened("a", "STUCK"), opened("b"), infill("1", "a"))
        assert await refusal(talking) == ("worker_crashed", "1", "a")
        await talking.send(infill("2", "b"))
        assert (await talking.receive(Result)).id == "2"


async def test_requests_wait_for_the_model_or_are_refused_as_they_choose() -> None:
    async with live(engine="scripted_engine:load_slowly") as (_, address), talk(address) as (talking, _):
        await talking.send(opened("a"), opened("b"), infill("1", "a"), infill("2", "b", wait=False))
        error = await talking.receive(Error)
        assert (error.code, error.id) == ("loading", "2")
        assert error.retry_after_ms > 0
        assert (await talking.receive(Progress)).state == "loading"
        assert (await talking.receive(Result)).id == "1"


async def test_opening_a_document_loads_a_failed_model_again(
    scripted_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mended = scripted_engine / "mended"
    monkeypatch.setenv("SCRIPTED_MENDED", str(mended))
    async with live(engine="scripted_engine:load_when_mended") as (_, address), talk(address) as (talking, _):
        await talking.send(opened("a"), infill("1", "a"))
        assert (await talking.receive(Error)).code == "model_failed"
        mended.touch()
        await talking.send(infill("2", "a"))
        assert (await talking.receive(Error)).code == "model_failed"  # a request alone does not load the model again
        await talking.send(opened("a"), infill("3", "a"))
        assert (await talking.receive(Result)).id == "3"


async def test_limits_are_typed_errors() -> None:
    config = {"max_document_bytes": 100, "max_documents": 2, "max_regions": 3}
    async with live(**config) as (_, address), talk(address) as (talking, _):
        await talking.send(opened("big", "x" * 101))
        assert await refusal(talking) == ("too_large", "", "big")
        await talking.send(opened("a"), opened("b"), opened("c"))
        assert await refusal(talking) == ("too_large", "", "c")
        await talking.send(infill("1", "a", at=(0, 1, 2, 3)))
        assert await refusal(talking) == ("too_large", "1", "a")
        await talking.send(infill("5", "a", version=7))
        assert await refusal(talking) == ("wrong_version", "5", "a")
        await talking.send(opened("a", "x" * 101, 2), Change("a", 3, ()))  # a refused opening closes the document
        assert [await refusal(talking) for _ in range(2)] == [("too_large", "", "a"), ("unknown_document", "", "a")]


@pytest.mark.parametrize(("name", "value"), [("max_tokens", 2**64), ("start", 2**63), ("end", -(2**63) - 1)])
async def test_numbers_that_do_not_fit_in_the_frames_to_the_worker_are_refused(
    name: str, value: int, front: Front
) -> None:
    async with talk(front.address, subprotocol=JSON) as (talking, _):
        region = {"start": 0, "end": 0} | {name: value}
        await talking.connection.send(
            json.dumps({"type": "infill", "id": "1", "uri": "a", "version": 1, "regions": [region]})
        )
        await talking.send(opened("a"))
        assert await refusal(talking) == ("bad_message", "1", "a")
        await talking.send(infill("2", "a"))
        assert (await talking.receive(Result)).id == "2"


async def test_an_unreadable_change_is_refused_and_closes_the_document(front: Front) -> None:
    async with talk(front.address, subprotocol=JSON) as (talking, _):
        await talking.send(opened("a"))
        # JavaScript encodes half a surrogate pair like this.
        await talking.connection.send(
            r'{"type":"change","uri":"a","version":2,"edits":[{"start":0,"end":0,"text":"\ud83e"}]}'
        )
        assert await refusal(talking) == ("bad_message", "", "a")
        await talking.send(Change("a", 3, ()))
        assert await refusal(talking) == ("unknown_document", "", "a")


async def test_hello_must_be_the_first_message_and_the_only_hello(front: Front) -> None:
    async with talk(front.address, hello=False) as (talking, _):
        await talking.send(GetStatus())
        assert await refusal(talking) == ("bad_message", "", "")
        await talking.send(Hello())
        await talking.receive(Welcome)
        await talking.send(Hello())
        assert await refusal(talking) == ("bad_message", "", "")


async def test_two_running_requests_cannot_have_the_same_id(front: Front) -> None:
    async with talk(front.address) as (talking, _):
        await talking.send(opened("a"), opened("b", "other"))
        await talking.send(infill("1", "a", steps=ENDLESS, step_s=0.01), infill("1", "b"))
        assert await refusal(talking) == ("bad_request", "1", "b")
        await talking.send(Cancel("1"), infill("1", "b"))
        assert await refusal(talking) == ("cancelled", "1", "a")
        assert (await talking.receive(Result)).result.fills == (expected("other", 0),)


async def test_a_clock_that_jumps_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = itertools.cycle([0.0, 4e9, 1e9, -1e9])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    options = DecodeOptions(deadline_ms=20_000, temperature=0.01)
    async with live() as (_, address), talk(address) as (talking, _):
        for id in ("1", "2", "3"):
            await talking.send(opened("a"), infill(id, "a", steps=5, options=options), GetStatus())
            assert 0 <= (await talking.receive(Status)).uptime_s < 60
            assert (await talking.receive(Result)).result.status == "ok"


async def test_the_service_announces_its_end() -> None:
    async with live(shutdown_grace_s=5.0) as (service, address), talk(address) as (talking, _):
        await talking.send(opened("a"), opened("b"), infill("1", "a", steps=10, step_s=0.05, snapshots=True))
        await talking.receive(Step)
        closing = asyncio.create_task(service.close())
        await asyncio.sleep(0)
        await talking.send(infill("2", "b"))
        assert await refusal(talking) == ("shutting_down", "2", "b")
        heard = await talking.receive_all_until(Goodbye)
        assert [message.id for message in heard if isinstance(message, Result)] == ["1"]
        await closing


async def test_closing_a_document_cancels_its_requests(front: Front) -> None:
    async with talk(front.address) as (talking, _):
        await talking.send(opened("a"), infill("1", "a", steps=ENDLESS, step_s=0.01), Close("a"))
        assert await refusal(talking) == ("cancelled", "1", "a")
        await until_idle(talking)
        await talking.send(infill("2", "a"))
        assert await refusal(talking) == ("unknown_document", "2", "a")
