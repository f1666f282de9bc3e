"""Tentative commits, ahead of the witness: how many, in which slots, and that failed ones are not repeated."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import require
from tests.model.syntax.test_foresight import offered

from lacuna_model.core.constraint import Commit, GapView, Remask, fill_tokens
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.region.region_rules import RegionRules
from lacuna_model.syntax.search.tentative import MAX_AHEAD, MAX_FAILED, Tentative
from lacuna_model.syntax.text.vocabulary import vocabulary_of

WITNESS = Fill((5, 6, 7), b"abc", 3)


@pytest.fixture
def gap(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> GapText:
    """A gap whose grammar can read any tokens."""
    text = GapText(vocabulary_of(tokens), RegionRules(Region(0, 0), b""))
    monkeypatch.setattr(text, "reads", lambda written: True)
    return text


def view(*slots: int, open_slots: int = 4, done: tuple[int, ...] = ()) -> GapView:
    return GapView(done, (*slots, *(None,) * open_slots), tentative=True)


def test_the_first_open_slot_may_be_tentative_but_no_end_token_and_not_the_last_slot(
    gap: GapText, tokens: SmallTokens
) -> None:
    ahead = Tentative([gap], tokens.eog_id)
    assert ahead.takes([Commit(0, 1, 9)], view(5), WITNESS)
    assert not ahead.takes([Commit(0, 2, 9)], view(5), WITNESS)
    assert not ahead.takes([Commit(0, 1, tokens.eog_id)], view(5), WITNESS)
    assert not ahead.takes([Commit(0, 1, 9)], view(5, open_slots=1), WITNESS)
    assert not ahead.takes([Commit(0, 0, 9)], GapView((), (None, 5, tokens.eog_id, None, None)), WITNESS)


def test_the_number_of_tokens_ahead_of_the_witness_is_limited(gap: GapText, tokens: SmallTokens) -> None:
    ahead = Tentative([gap], tokens.eog_id)
    for count in range(MAX_AHEAD + 2):
        written = (5, 6, *(9,) * count)
        assert bool(ahead.takes([Commit(0, len(written), 9)], view(*written), WITNESS)) == (count < MAX_AHEAD)


def test_a_run_is_read_at_once_and_if_that_fails_up_to_its_last_readable_token(
    gap: GapText, tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, ...]] = []

    def reads(written: tuple[int, ...]) -> bool | None:
        asked.append(written)
        return None if 99 in written else True

    monkeypatch.setattr(gap, "reads", reads)
    ahead = Tentative([gap], tokens.eog_id)
    run = [Commit(0, 3, 11), Commit(0, 1, 9), Commit(0, 2, 10)]
    taken = [Commit(0, slot, slot + 8, tentative=True) for slot in (1, 2, 3)]
    assert ahead.takes(run, view(5), WITNESS) == taken
    assert asked == [(5, 9, 10, 11)]
    assert ahead.takes([*run[1:], Commit(0, 3, 99), Commit(0, 4, 12)], view(5, open_slots=6), WITNESS) == taken[:2]
    assert ahead.takes([*run[1:], Commit(0, 4, 12)], view(5, open_slots=6), WITNESS) == taken[:2]


def test_a_token_that_the_grammar_cannot_read_is_not_taken(
    gap: GapText, tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gap, "reads", lambda written: written != (5, 9))
    ahead = Tentative([gap], tokens.eog_id)
    assert not ahead.takes([Commit(0, 1, 9)], view(5), WITNESS)
    assert ahead.takes([Commit(0, 1, 8)], view(5), WITNESS)


def test_no_token_beyond_the_lines_of_a_region_is_tentative(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    gap = GapText(vocabulary_of(tokens), RegionRules(Region(0, 0, single_line=True), b""))
    monkeypatch.setattr(gap, "reads", lambda written: True)
    newline, letter = tokens.encode("\n")[0], tokens.encode("a")[0]
    ahead = Tentative([gap], tokens.eog_id)
    assert ahead.takes([Commit(0, 1, letter)], view(5), WITNESS)
    assert not ahead.takes([Commit(0, 1, newline)], view(5), WITNESS)


def test_a_failed_token_is_masked_and_not_tried_again(gap: GapText, tokens: SmallTokens) -> None:
    ahead = Tentative([gap], tokens.eog_id)
    assert ahead.take_back(0, view(6, 9, 9, done=(5,)), WITNESS) == Remask(0, 1)
    assert not ahead.takes([Commit(0, 1, 9)], view(6, done=(5,)), WITNESS)
    assert ahead.takes([Commit(0, 1, 8)], view(6, done=(5,)), WITNESS)


def test_after_many_failures_only_one_token_at_a_time_is_tentative(gap: GapText, tokens: SmallTokens) -> None:
    ahead = Tentative([gap], tokens.eog_id)
    assert ahead.takes([Commit(0, 2, 9)], view(6, 8, done=(5,)), WITNESS)
    for token in range(20, 20 + MAX_FAILED):
        ahead.take_back(0, view(token), WITNESS)
    assert ahead.takes([Commit(0, 1, 8)], view(6, done=(5,)), WITNESS)
    assert not ahead.takes([Commit(0, 2, 9)], view(6, 8, done=(5,)), WITNESS)


def test_the_tokens_ahead_are_those_that_the_witness_lacks(gap: GapText, tokens: SmallTokens) -> None:
    ahead = Tentative([gap], tokens.eog_id)
    assert ahead.run(view(6, 9, 9, done=(5,)), WITNESS) == range(1, 3)
    assert not ahead.run(view(5, 6, 7), WITNESS)
    assert ahead.goes_on(0, view(9, 9), WITNESS)
    assert not ahead.goes_on(0, view(9, 9, open_slots=1), WITNESS)


# The prefix, the true fill and the suffix of a gap. No search completes the first half of the fill.
UNFINISHED: Sequence[tuple[str, bytes, str, bytes]] = (
    (
        "python",
        b"class A:\n    def f(self):\n        return 1\n\n",
        "    __iand__ = f",
        b"\n\n    def g(self):\n        return 2\n",
    ),
    ("typescript", b"const a =\n    ", "b ? (c as any).name : d.e", b";\nlet f = a;\n"),
)


@pytest.mark.parametrize(("name", "before", "inside", "behind"), UNFINISHED, ids=[one[0] for one in UNFINISHED])
def test_tokens_without_a_witness_are_admitted_as_tentative_ones(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch, name: str, before: bytes, inside: str, behind: bytes
) -> None:
    """No token of a fill is lost where the search finds nothing for some of its beginnings."""
    truth = [*tokens.encode(inside), tokens.eog_id]
    constraint = SyntaxConstraint(before + behind, [Region(len(before), len(before))], require(name), tokens)
    renew, hidden = constraint._renew, range(1, 6)

    def finds_nothing_at_first(gaps: Sequence[GapView], own: Sequence[Commit], gap: int) -> None:
        last = own[0].slot if own else len(fill_tokens(gaps[gap], tokens.eog_id)) - 1
        if last not in hidden:
            renew(gaps, own, gap)

    monkeypatch.setattr(constraint, "_renew", finds_nothing_at_first)
    tentative = []
    for place, token in enumerate(truth):
        view = offered(truth[:place], place, len(truth) + 12, token, tokens)
        (one,) = constraint.admit([replace(view, tentative=any(tentative[-1:]))], [Commit(0, place, token)])
        assert one in (Commit(0, place, token), Commit(0, place, token, tentative=True))
        tentative.append(one != Commit(0, place, token))
    assert all(tentative[place] for place in hidden)
    assert not tentative[-1]


def test_at_the_last_slot_a_search_tries_the_proposed_token_before_a_remask(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a tentative token is masked again, a search tries the proposed token. It may find a witness without it."""
    one, other, last = (tokens.encode(text)[0] for text in "123")
    text = b"x = \ny = 1\n"
    for found, admitted in (((other, last), last), ((other,), tokens.eog_id)):
        constraint = SyntaxConstraint(text, [Region(4, 4, max_tokens=2)], require("python"), tokens)
        constraint._witness = [Fill((one,), b"1", 1)]
        fill = Fill(found, tokens.decode_bytes(found), len(found))
        monkeypatch.setattr(constraint._renewal, "find", lambda *asked, fill=fill: [fill])
        view = GapView((), (other, None), tentative=True)
        assert constraint.admit([view], [Commit(0, 1, last)]) == [Commit(0, 1, admitted)]


def test_no_slot_is_ahead_where_the_witness_leaves_a_finished_block(gap: GapText, tokens: SmallTokens) -> None:
    """A finished block cannot be taken back."""
    ahead = Tentative([gap], tokens.eog_id)
    assert list(ahead.run(view(8, done=(5, 6)), WITNESS)) == [0]
    assert list(ahead.run(view(8, done=(5, 9)), WITNESS)) == []
    assert list(ahead.run(view(done=(5, 9), open_slots=0), WITNESS)) == []
