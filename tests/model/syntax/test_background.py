"""A constraint in the background: searches run in another thread between calls, and the answers are the same."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import fill, noisy, require

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint, constraint_for
from lacuna_model.syntax.background import Background
from lacuna_model.syntax.search.beam import Effort

TEXT = b"def f(x):\n    y = \n    return y\n\n\nprint()\n"
REGIONS = (Region(18, 18, max_tokens=12), Region(42, 42, max_tokens=12))
TRUTHS = ("x + (x * 2)", 'f(1), "a"')


def new_constraint(tokens: SmallTokens) -> SyntaxConstraint:
    return SyntaxConstraint(TEXT, REGIONS, require("python"), tokens)


def views() -> list[GapView]:
    return [GapView((), (), budget=region.max_tokens) for region in REGIONS]


@pytest.mark.parametrize("seed", range(6))
def test_results_are_the_same_without_another_thread(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(Effort, "late", False)  # searches end by their number of checks, not by time
    truths = [tokens.encode(truth) for truth in TRUTHS]

    def filled(constraint: SyntaxConstraint | Background) -> object:
        model = noisy(truths, tokens, np.random.default_rng(seed), 0.2)
        return fill(constraint, model, [12, 12], tokens.eog_id)

    alone = new_constraint(tokens)
    alone.foresee(views())
    beside = Background(lambda: new_constraint(tokens), views())
    assert filled(beside) == filled(alone)
    assert (beside.stats.vetoes, beside.stats.swaps) == (alone.stats.vetoes, alone.stats.swaps)


def test_searches_are_made_in_another_thread(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    foresee, follow = SyntaxConstraint.foresee, SyntaxConstraint.follow

    def seen_foreseeing(self: SyntaxConstraint, gaps: Sequence[GapView]) -> list[str]:
        threads.append(threading.get_ident())
        return foresee(self, gaps)

    def seen_following(self: SyntaxConstraint) -> None:
        if any(self._due):
            threads.append(threading.get_ident())
        follow(self)

    monkeypatch.setattr(SyntaxConstraint, "foresee", seen_foreseeing)
    monkeypatch.setattr(SyntaxConstraint, "follow", seen_following)
    fill(
        Background(lambda: new_constraint(tokens), views()),
        noisy([tokens.encode(truth) for truth in TRUTHS], tokens, np.random.default_rng(1), 0.0),
        [12, 12],
        tokens.eog_id,
    )
    assert len(threads) > 2
    assert threading.get_ident() not in threads


def test_an_error_in_the_other_thread_is_raised_by_the_next_call(tokens: SmallTokens) -> None:
    constraint = constraint_for(b"x", [Region(1, 1, regex="(")], "a.py", "", tokens, syntax=True)
    with pytest.raises(RequestError):
        constraint.admit([GapView((), (None,))], [Commit(0, 0, 5)])


def test_a_closed_constraint_searches_no_more(tokens: SmallTokens) -> None:
    begun, closed = threading.Event(), threading.Event()

    def late() -> SyntaxConstraint:
        begun.set()
        closed.wait()
        return new_constraint(tokens)

    constraint = Background(late, views())
    begun.wait()
    assert constraint.stats.verifies == 0  # this does not wait for the other thread
    constraint.close()
    closed.set()
    assert constraint.finish(views(), truncate=True).status == "ok"
    assert constraint._work.result().witness is None


def test_tentative_tokens_are_confirmed_once_a_witness_holds_them(tokens: SmallTokens) -> None:
    (letter,) = tokens.encode("x")
    ids, logp = np.full((12, 1), letter, dtype=np.int64), np.full((12, 1), -0.1, dtype=np.float32)
    gaps = [GapView((), (None,) * 12, ids, logp) for _ in REGIONS]
    constraint = Background(lambda: new_constraint(tokens), views())
    (one,) = constraint.admit(gaps, [Commit(0, 0, letter)])
    assert isinstance(one, Commit)
    assert one.token == letter
    written = GapView((), (letter, *(None,) * 11), ids, logp, tentative=one.tentative)
    assert constraint.confirms(0, written)
    assert not constraint.confirms(0, GapView((), (*tokens.encode(")"), *(None,) * 11), ids, logp, tentative=True))
