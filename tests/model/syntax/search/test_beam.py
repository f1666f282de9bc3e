"""The joint search over the candidate queues of the gaps."""

from collections.abc import Callable
from typing import cast

from lacuna_model.syntax.check.document import Check
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.search.beam import Effort, joint_search
from lacuna_model.syntax.search.candidates import Candidates


class Queue:
    """A queue of given fills."""

    def __init__(self, *texts: bytes) -> None:
        self._fills = [Fill((), text, 0, b"") for text in texts]

    def pop(self, late: Callable[[], bool] = lambda: False) -> Fill | None:
        """The next fill."""
        return self._fills.pop(0) if self._fills else None


class Verifier:
    """A fake verifier: one pair of fills is valid; every other pair has a fault in its first fill."""

    def __init__(self, valid: tuple[bytes, bytes]) -> None:
        self._valid = valid

    def recall(self, texts: tuple[bytes, ...]) -> Check | None:
        """Remembers nothing."""
        return None

    def check(self, texts: tuple[bytes, ...], *, thorough: bool) -> Check:
        """Expects a text for both gaps."""
        first, second = texts
        return Check(() if (first, second) == self._valid else ((0, 0),))


HELD = Fill((), b"held", 0, b"")


def search(*texts: bytes) -> list[bytes] | None:
    """Searches with a first gap that keeps its fill and a second gap with these candidates."""
    queues = cast(dict[int, Candidates], {1: Queue(*texts)})
    found = joint_search(queues, [HELD, None], Verifier((b"held", b"good")), Effort(20, 1.0))
    return [fill.text for fill in found.whole] if found.whole is not None else None


def test_the_next_candidate_is_tried_even_if_the_fault_is_in_a_gap_that_keeps_its_fill() -> None:
    assert search(b"bad", b"good") == [b"held", b"good"]


def test_a_search_that_runs_out_of_candidates_finds_nothing() -> None:
    assert search(b"bad", b"worse") is None


def test_no_candidate_is_taken_from_a_queue_that_the_budget_cannot_check() -> None:
    queue = Queue(b"bad", b"worse", b"good")
    found = joint_search(
        cast(dict[int, Candidates], {1: queue}), [HELD, None], Verifier((b"held", b"good")), Effort(2, 1.0)
    )
    assert found.whole is None
    assert found.unsolved == {0}
    assert [fill.text for fill in queue._fills] == [b"good"]
