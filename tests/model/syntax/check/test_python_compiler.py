"""CPython's compiler may be asked by several threads."""

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lacuna_model.syntax.check.compilers import compiled


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Garbage is collected, by code in Python, within every tree, and threads take turns there."""
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


class Cycle:
    """Garbage that runs code when it is collected."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        for _ in range(100):
            pass


@pytest.mark.usefixtures("interrupted")
def test_threads_do_not_disturb_each_other() -> None:
    def read(text: bytes) -> None:
        for _ in range(20):
            Cycle()
            compiled(text)

    shallow, deep = b"x = 1\n" * 40, b"y = " + b"(" * 40 + b"1" + b" + 2)" * 40 + b"\n"
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(read, [shallow, deep * 4] * 10))


def test_errors_are_raised_and_warnings_are_not() -> None:
    compiled(b"'\\d'\n1 is 1\n")
    with pytest.raises(SyntaxError):
        compiled(b"def f(:\n")
