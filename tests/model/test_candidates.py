from collections.abc import Sequence

import pytest

from lacuna_model.candidates import SideBySide
from lacuna_model.canvas import Canvas
from lacuna_model.constraint import Commit, ConstraintStats, GapView, Verdict
from lacuna_model.context import lay_out
from lacuna_model.engine import Engine
from lacuna_model.errors import RequestError
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.params import MAX_CANDIDATES, DecodeOptions, InfillRequest, Region

from . import tiny


class Recorded:
    """Admits what does not hold the forbidden token; its verdict is what it was made with."""

    active = True

    def __init__(self, verdict: Verdict, forbidden: int = -1) -> None:
        self.stats = ConstraintStats()
        self.seen: list[tuple[int, list[Commit]]] = []
        self._verdict = verdict
        self._forbidden = forbidden

    def admit(self, gaps: list[GapView], proposal: list[Commit]) -> list[Commit]:
        self.seen.append((len(gaps), proposal))
        self.stats.verifies += 1
        return [commit for commit in proposal if commit.token != self._forbidden]

    def finish(self, gaps: list[GapView], *, truncate: bool) -> Verdict:
        return self._verdict


def views(count: int) -> list[GapView]:
    return [GapView((), (None,)) for _ in range(count)]


def test_each_candidate_is_asked_about_its_own_gaps() -> None:
    parts = [Recorded(Verdict("ok", ("a", "b"))), Recorded(Verdict("ok", ("c", "d")), forbidden=7)]
    both = SideBySide(parts, 2, alike)
    admitted = both.admit(views(4), [Commit(0, 0, 5), Commit(2, 0, 7), Commit(3, 0, 6)])
    assert admitted == [Commit(0, 0, 5), Commit(3, 0, 6)]
    assert parts[0].seen == [(2, [Commit(0, 0, 5)])]
    assert parts[1].seen == [(2, [Commit(0, 0, 7), Commit(1, 0, 6)])]
    assert both.stats.verifies == 2


def recorded(*fills: tuple[str, ...] | None) -> list[Recorded]:
    return [Recorded(Verdict("ok" if texts else "no_valid_fill", texts)) for texts in fills]


def alike(fills: Sequence[str]) -> float:
    return 0.0


def test_the_first_that_found_a_fill_is_delivered_and_repetitions_are_left_out() -> None:
    both = SideBySide(recorded(None, ("a",), ("b",), ("a",), ("c",)), 1, alike)
    assert both.finish(views(5), truncate=False).fills == ("a",)
    assert both.others == (("b",), ("c",))


def test_the_likeliest_is_delivered_where_there_is_time_to_ask() -> None:
    both = SideBySide(
        recorded(None, ("a",), ("b",), ("c",)), 1, lambda fills: {"a": -3.0, "b": -1.0, "c": -2.0}[fills[0]]
    )
    assert both.finish(views(4), truncate=False).fills == ("b",)
    assert both.others == (("c",), ("a",))
    assert both.finish(views(4), truncate=True).fills == ("a",)


def test_where_none_found_a_fill_the_first_says_why() -> None:
    both = SideBySide(recorded(None, None), 1, alike)
    assert both.finish(views(2), truncate=False).fills is None
    assert both.others == ()


def test_candidates_do_not_read_each_other(model: LoadedModel) -> None:
    layout = lay_out((tiny.CODE[:120], tiny.CODE[130:]), model.tokenizer, reserve=lambda _: 64, hole=64)
    cache = ContextCache(model.base)
    cache.update(layout)
    read = tiny.reader(model, cache, layout, guidance=0.6)
    canvases = [Canvas(layout.gaps[0], 4, 16, candidate=candidate) for candidate in range(3)]
    for canvas in canvases:
        canvas.open_block()
    for canvas, token in zip(canvases, (40, 41, 42), strict=True):
        canvas.slots = [token, token + 1, token + 2, token + 3]
    read.finish_block(canvases)
    for canvas in canvases:
        canvas.open_block()
        canvas.slots[0] = 50 + canvas.candidate
    together = read.draft(canvases)
    for canvas, rows in zip(canvases, together, strict=True):
        (alone,) = read.draft([canvas] if canvas.candidate else canvases[:1])
        if canvas.candidate:  # alone or not, the masked pass shows a candidate its own rows only
            assert (alone - rows).abs().max() < 1e-4
    assert (
        len({tuple(rows.argmax(-1).tolist()) for rows in together}) > 1 or (together[0] - together[1]).abs().max() > 0
    )


def fill(engine: Engine, candidates: int) -> tuple[tuple[str, ...], ...]:
    at = tiny.CODE.index("    ") + 1
    asked = InfillRequest(
        tiny.CODE,
        (Region(at, at, max_tokens=6, min_tokens=4),),
        candidates=candidates,
        options=DecodeOptions(syntax=False, prior=False),
    )
    result = engine.fill(asked)
    return (result.fills, *result.alternatives)


def test_what_is_found_alone_is_among_several_and_all_differ(model: LoadedModel) -> None:
    alone, several = fill(Engine(model), 1), fill(Engine(model), 4)
    assert alone[0] in several
    assert 2 <= len(set(several)) == len(several) <= 4


@pytest.mark.parametrize("count", [0, -1, MAX_CANDIDATES + 1])
def test_a_number_of_candidates_that_cannot_be_is_refused(model: LoadedModel, count: int) -> None:
    with pytest.raises(RequestError, match="candidates"):
        fill(Engine(model), count)
