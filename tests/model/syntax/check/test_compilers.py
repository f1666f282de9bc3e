"""Which errors the languages' own compilers report."""

import gc
import weakref

from lacuna_model.syntax.check.compilers import Compiler, python_compiles
from lacuna_model.syntax.check.error_set import Fault


def error(text: bytes, fill: tuple[int, int]) -> frozenset[Fault]:
    """The error that a fill, a byte range of a text, adds."""
    return Compiler(text, [fill]).faults(text, [fill])


class Held:
    """What a caller holds."""


def test_a_try_without_clauses_is_an_error_of_its_own_fill() -> None:
    text = b"try:\n    try:\n        a()\n    finally:\n        b()\n    c()\nd()\n"
    assert error(text, (0, 4))
    behind = b"try:\n    a()\nb()\nc()\n"
    assert not error(behind, (len(behind) - 4, len(behind) - 1))


def test_nothing_that_a_caller_holds_is_kept_with_an_answer() -> None:
    def asks() -> "weakref.ref[Held]":
        held = Held()
        assert not python_compiles(b"def held(:\n")
        return weakref.ref(held)

    held = asks()
    gc.collect()
    assert held() is None
