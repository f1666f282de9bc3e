from lacuna_model.core import work
from lacuna_model.core.constraint import Commit, ConstraintStats, GapView, Verdict
from lacuna_model.decode import side_by_side
from lacuna_model.decode.side_by_side import SideBySide


class Recorded:
    """A fake constraint: it logs its calls, refuses one token and returns a given verdict."""

    active = True

    def __init__(self, verdict: Verdict, forbidden: int = -1) -> None:
        self.stats = ConstraintStats()
        self.seen: list[tuple[int, list[Commit]]] = []
        self.closed = False
        self.work_ns = 0
        self._verdict = verdict
        self._forbidden = forbidden

    def admit(self, gaps: list[GapView], proposal: list[Commit]) -> list[Commit]:
        self.seen.append((len(gaps), proposal))
        self.stats.verifies += 1
        work.spend(self.work_ns)
        return [commit for commit in proposal if commit.token != self._forbidden]

    def confirms(self, gap: int, view: GapView) -> bool:
        return gap == self._forbidden

    def finish(self, gaps: list[GapView], *, truncate: bool) -> Verdict:
        return self._verdict

    def close(self) -> None:
        self.closed = True


def views(count: int) -> list[GapView]:
    return [GapView((), (None,)) for _ in range(count)]


def test_each_candidate_is_asked_about_its_own_gaps() -> None:
    parts = [Recorded(Verdict("ok", ("a", "b"))), Recorded(Verdict("ok", ("c", "d")), forbidden=7)]
    both = SideBySide(parts, 2)
    admitted = both.admit(views(4), [Commit(0, 0, 5), Commit(2, 0, 7), Commit(3, 0, 6)])
    assert admitted == [Commit(0, 0, 5), Commit(3, 0, 6)]
    assert parts[0].seen == [(2, [Commit(0, 0, 5)])]
    assert parts[1].seen == [(2, [Commit(0, 0, 7), Commit(1, 0, 6)])]
    assert both.stats.verifies == 2


def test_a_candidate_confirms_its_own_gaps_and_all_are_closed() -> None:
    parts = [Recorded(Verdict("ok", ("a", "b"))), Recorded(Verdict("ok", ("c", "d")), forbidden=1)]
    both = SideBySide(parts, 2)
    assert [both.confirms(gap, view) for gap, view in enumerate(views(4))] == [False, False, False, True]
    both.close()
    assert all(part.closed for part in parts)


def test_candidates_after_one_with_much_work_are_asked_in_the_next_call() -> None:
    parts = [Recorded(Verdict("ok", ("a",))), Recorded(Verdict("ok", ("b",)), forbidden=7)]
    parts[0].work_ns = 2 * round(side_by_side.CALL_SECONDS * 1e9)
    both = SideBySide(parts, 1)
    proposal = [Commit(0, 0, 7), Commit(1, 0, 6)]
    assert both.admit(views(2), proposal) == [Commit(0, 0, 7)]
    assert both.admit(views(2), proposal) == [Commit(1, 0, 6), Commit(0, 0, 7)]


def recorded(*fills: tuple[str, ...] | None) -> list[Recorded]:
    return [Recorded(Verdict("ok" if texts else "no_valid_fill", texts)) for texts in fills]


def test_the_verdict_is_that_of_the_first_candidate_with_a_fill() -> None:
    both = SideBySide(recorded(None, ("a",), ("b",)), 1)
    assert both.finish(views(3), truncate=False).fills == ("a",)
    assert both.found == {("a",): 1, ("b",): 2}


def test_without_a_fill_of_any_candidate_nothing_is_found() -> None:
    both = SideBySide(recorded(None, None), 1)
    assert both.finish(views(2), truncate=False).fills is None
    assert both.found == {}
