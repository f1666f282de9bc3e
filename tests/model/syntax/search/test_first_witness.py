"""How long a first witness is searched for, and in how many calls."""

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.test_witness import constraint_of, open_view

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.syntax import witness
from lacuna_model.syntax.search import first_witness


def test_a_closed_gap_with_an_invalid_fill_is_searched_only_once(tokens: SmallTokens) -> None:
    constraint = constraint_of("f(1|\ng(2|\n", "python", tokens)
    (bracket,) = tokens.encode("]")
    gaps = [GapView((), (bracket, tokens.eog_id, None, None), closed=True), open_view()]
    proposal = [Commit(1, 0, 5)]
    first = constraint.foresee([open_view(), open_view()])
    assert all(fill.startswith(")") for fill in first)
    for _ in range(4):
        constraint.admit(gaps, proposal)
        assert constraint._first.attempts <= 1


def test_an_interrupted_search_continues_in_the_next_call(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = constraint_of("f(|)\n", "python", tokens)
    with monkeypatch.context() as patched:
        patched.setattr(witness, "CALL_SECONDS", 0.0)
        for _ in range(first_witness.MOST_BROKEN_OFF):
            assert constraint.admit([open_view()], [Commit(0, 0, 5)]) == []
            assert constraint._first.attempts == 0
        assert constraint.admit([open_view()], [Commit(0, 0, 5)]) == []
        assert constraint._first.attempts == 1  # from now on the calls count as attempts
    assert constraint.admit([open_view()], [Commit(0, 0, 5)])
