import asyncio
import io

import pytest

from lacuna_server.wire import frames
from lacuna_server.wire.frames import Stop


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
