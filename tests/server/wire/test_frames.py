import asyncio
import io

import pytest

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region, Snapshot
from lacuna_server.wire import frames
from lacuna_server.wire.frames import (
    Done,
    Failed,
    Loading,
    Ready,
    Refused,
    Setup,
    Start,
    Stepped,
    Stop,
    Stopped,
    Submission,
)

TO_WORKER = [
    Setup("module:engine", "model", 2, "cpu", "auto", 10, log_code=True),
    Start(1, Submission(InfillRequest("täxt", (Region(0, 1),)), "", "document", snapshots=True)),
    Stop(1),
]
FROM_WORKER = [
    Loading(0.5, "half"),
    Ready("model"),
    Failed("damaged"),
    Stepped(1, Snapshot(1, ("x",), ((),))),
    Stepped(1, None),
    Done(1, 0.5, 3, InfillResult("ok", ("x",), FillStats())),
    Refused(1, 0.5, 3, "bad_request", "overlap"),
    Stopped(1, 0.5, 3),
]


def test_the_worker_reads_the_frames_that_were_encoded() -> None:
    stream = io.BytesIO(b"".join(map(frames.encode, TO_WORKER)))
    assert [frames.TO_WORKER.decode(frames.read(stream) or b"") for _ in TO_WORKER] == TO_WORKER
    assert frames.read(stream) is None


async def test_the_server_reads_the_frames_that_were_encoded() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"".join(map(frames.encode, FROM_WORKER)))
    stream.feed_eof()
    assert [frames.FROM_WORKER.decode(await frames.receive(stream) or b"") for _ in FROM_WORKER] == FROM_WORKER
    assert await frames.receive(stream) is None


@pytest.mark.parametrize("kept", [0, 2, 4, 7])
async def test_an_incomplete_frame_is_the_end_of_the_stream(kept: int) -> None:
    frame = frames.encode(Stop(1))[:kept]
    assert frames.read(io.BytesIO(frame)) is None
    stream = asyncio.StreamReader()
    stream.feed_data(frame)
    stream.feed_eof()
    assert await frames.receive(stream) is None


async def test_a_frame_that_is_too_long_ends_the_stream_before_it_is_read() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(frames.LENGTH.pack(2**32 - 1) + b"x")
    assert await frames.receive(stream) is None
    stream.feed_data(frames.LENGTH.pack(10) + b"0123456789")
    assert await frames.receive(stream, 9) is None
