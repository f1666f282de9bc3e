"""A file that nobody waits for."""

import contextlib
import os

from lacuna_server.worker.streams import MAX_WAITING, Unhurried


def full_pipe() -> tuple[int, int, int]:
    """Both ends of a pipe that takes no further byte and does not wait, and how many bytes are in it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(writing, bytes(4096))
    return reading, writing, filled


def test_what_was_lost_is_counted() -> None:
    reading, writing, filled = full_pipe()
    stream = Unhurried(writing)
    for _ in range(3):
        stream.write(b"lost\n")
    while stream.num_lost < 3:
        pass
    while filled:
        filled -= len(os.read(reading, filled))
    stream.write(b"there again\n")
    stream.finish()
    assert os.read(reading, 4096) == b"level=warning event=log_lines_lost number=3\nthere again\n"
    os.close(reading)
    os.close(writing)


def test_what_waits_is_bounded() -> None:
    reading, writing, _ = full_pipe()
    os.set_blocking(writing, True)  # its thread now stands still
    stream = Unhurried(writing)
    for _ in range(2 * MAX_WAITING):
        stream.write(b"line\n")
    assert MAX_WAITING - 1 <= stream.num_lost <= MAX_WAITING
    os.close(reading)  # which ends the thread's wait
    os.close(writing)


def test_it_knows_a_terminal() -> None:
    ours, theirs = os.openpty()
    reading, writing = os.pipe()
    assert Unhurried(theirs).isatty()
    assert not Unhurried(writing).isatty()
    for descriptor in (ours, theirs, reading, writing):
        os.close(descriptor)
