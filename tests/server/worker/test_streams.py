"""A stream whose writers never wait."""

import contextlib
import os
import subprocess
import sys

from lacuna_server.worker.streams import MAX_WAITING, Unhurried


def full_pipe() -> tuple[int, int, int]:
    """Both ends of a full pipe, whose writing end does not block, and the number of bytes in it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(writing, bytes(4096))
    return reading, writing, filled


def test_the_number_of_waiting_lines_is_bounded() -> None:
    reading, writing, _ = full_pipe()
    os.set_blocking(writing, True)  # the thread of the stream now blocks
    stream = Unhurried(writing)
    for _ in range(2 * MAX_WAITING):
        stream.write(b"line\n")
    assert MAX_WAITING - 1 <= stream.num_lost <= MAX_WAITING
    os.close(reading)  # this unblocks the thread
    os.close(writing)


def test_a_thread_that_prints_at_the_end_of_the_process_is_no_fatal_error() -> None:
    code = """import threading, time
from lacuna_server.worker import streams
streams.unhurried()
def talk():
    while True: print("line")
threading.Thread(target=talk, daemon=True).start()
time.sleep(0.1)"""
    pipe = subprocess.PIPE
    for process in [subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe) for _ in range(8)]:
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == 0
        assert b"Fatal" not in errors
