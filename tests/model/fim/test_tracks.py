"""Tracks, runs of tokens in one arena: reading them in pieces equals one pass over all tokens."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import tiny, tiny_masks

from lacuna_model.fim.tracks import MAX_UNUSED, TrackReader
from lacuna_model.network.arena import mask_of

from . import tiny_fim

MODEL = tiny_fim.loaded()
TOKENS = st.lists(st.integers(3, 60), min_size=1, max_size=12)


def new_reader() -> TrackReader:
    return TrackReader(MODEL.transformer, torch.float32)


@settings(max_examples=30, deadline=None)
@given(runs=st.lists(TOKENS, min_size=1, max_size=4), most=st.integers(1, 9))
def test_a_chain_read_in_pieces_gives_the_logits_of_the_complete_prompt(runs: list[list[int]], most: int) -> None:
    reader, start, chain = new_reader(), 0, []
    for run in runs:
        track = reader.new()
        track.become(run, start)
        start += len(run)
        chain.append(track)
    said = []
    with torch.inference_mode():
        while hidden := reader.read([chain], most):
            said += [reader.logits(states) for states in hidden.values()]
    expected = tiny_fim.plain_logits(MODEL, [token for run in runs for token in run])
    torch.testing.assert_close(torch.cat(said), expected, atol=1e-4, rtol=1e-4)


def test_the_tokens_of_a_track_have_the_additions_of_its_kind() -> None:
    added = MODEL.transformer.with_additions("edit", tiny_masks.rows(MODEL.config).layers)

    def states(kind: str) -> list[torch.Tensor]:
        reader = TrackReader(added, torch.float32)
        head, behind = reader.new(), reader.new(kind)
        head.become([5, 6, 7], 0)
        behind.become([8, 9], 3)
        with torch.inference_mode():
            hidden = reader.read([[head, behind]])
        return [hidden[head], hidden[behind]]

    plain, own = states(""), states("edit")
    assert torch.equal(plain[0], own[0])
    assert not torch.allclose(plain[1], own[1], atol=1e-2)
    expected = tiny_fim.plain_logits(MODEL, [5, 6, 7, 8, 9])
    torch.testing.assert_close(MODEL.transformer.head(torch.cat(plain)), expected, atol=1e-4, rtol=1e-4)


def test_chains_share_their_beginning_and_do_not_see_each_other() -> None:
    reader = new_reader()
    head, first, second = (reader.new() for _ in range(3))
    head.become([5, 6, 7], 0)
    first.become([8, 9], 3)
    second.become([10, 11, 12], 3)
    with torch.inference_mode():
        hidden = reader.read([[head, first], [head, second]])
        for track in (first, second):
            expected = tiny_fim.plain_logits(MODEL, [*head.ids, *track.ids])[3:]
            torch.testing.assert_close(reader.logits(hidden[track]), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_track_moved_to_a_position_is_attended_to_as_one_that_was_read_there(dtype: torch.dtype) -> None:
    """Whatever else is in the arena, and whichever positions it was moved to before: bit for bit the same."""

    def after(*places: int) -> torch.Tensor:
        reader = TrackReader(MODEL.transformer, dtype)
        head, moved, other, last = (reader.new() for _ in range(4))
        head.become([5, 6, 7], 0)
        moved.become([8, 9, 10, 11], places[0])
        other.become([12, 13], places[0])
        with torch.inference_mode():
            reader.read([[head], [moved], [other]])
            for place in places[1:]:
                reader.move_to(moved, place)
                reader.move_to(other, place + 1)
            last.become([14, 15], places[-1] + 4)
            return reader.logits(reader.read([[head, moved, last]])[last])

    there = after(5)
    atol = 1e-4 if dtype is torch.float32 else 0.05
    torch.testing.assert_close(after(9, 5), there, atol=atol, rtol=atol)
    torch.testing.assert_close(after(2, 5), there, atol=atol, rtol=atol)
    assert not torch.allclose(after(9, 8), there, atol=atol, rtol=atol)
    assert torch.equal(after(5, 40, 3, 17, 5), there)
    assert torch.equal(after(9, 2, 30, 5), after(9, 5))


@pytest.mark.parametrize("rounds", [3])
def test_dropped_rows_are_removed_from_the_arena(rounds: int) -> None:
    reader = new_reader()
    kept, other = reader.new(), reader.new()
    kept.become(MODEL.tokenizer.encode(tiny.CODE)[:40], 0)
    with torch.inference_mode():
        reader.read([[kept]])
        for number in range(rounds):
            other.become([5 + number] * (MAX_UNUSED // 2), 40)
            last = reader.new()
            last.become([7], 40 + len(other.ids))
            hidden = reader.read([[kept, other, last]])
            expected = tiny_fim.plain_logits(MODEL, [*kept.ids, *other.ids, 7])[-1]
            torch.testing.assert_close(reader.logits(hidden[last])[0], expected, atol=1e-4, rtol=1e-4)
            reader.drop(other)
            other = reader.new()
    assert max(row for track in reader.tracks for row in track.rows) < 40 + 2 * MAX_UNUSED


def test_a_chain_in_the_order_of_its_rows_needs_no_mask() -> None:
    reader = new_reader()
    head, suffix, fill = (reader.new() for _ in range(3))
    head.become([5, 6, 7], 0)
    suffix.become([8, 9], 3)
    fill.become([10, 11], 5)
    chains = [[head, suffix], [head, suffix, fill]]
    with torch.inference_mode():
        for chain in chains:
            rows = reader.next_rows([chain])
            assert rows is not None
            assert rows.in_order
            rows.forget()
            reader.read([chain])
        # Another token in the middle has a row after those that follow it in the text.
        suffix.become([8, 12, 9], 3)
        rows = reader.next_rows(chains[1:])
        assert rows is not None
        assert not rows.in_order
        assert mask_of(rows.seen, 9).tolist()[0] == [True] * 4 + [False] * 3 + [True, False]
        (seen,) = rows.seen[:1]
        assert seen.order.tolist() == [0, 1, 2, 3, 7, 8]  # as in the text
        rows.forget()
        other = reader.new()
        other.become([13], 3)
        beside = reader.next_rows([[head, suffix], [head, other]])
        assert beside is not None
        assert not beside.in_order
