"""Tracks, runs of tokens in one arena: reading them in pieces equals one pass over all tokens."""

import pytest
import torch
from tests.model import tiny

from lacuna_model.fim.tracks import MAX_UNUSED, TrackReader

from . import tiny_fim

MODEL = tiny_fim.loaded()


def new_reader() -> TrackReader:
    return TrackReader(MODEL.transformer, torch.float32)


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


def test_dropped_rows_are_removed_from_the_arena() -> None:
    reader = new_reader()
    kept, other = reader.new(), reader.new()
    kept.become(MODEL.tokenizer.encode(tiny.CODE)[:40], 0)
    with torch.inference_mode():
        reader.read([[kept]])
        for number in range(3):
            other.become([5 + number] * (MAX_UNUSED // 2), 40)
            last = reader.new()
            last.become([7], 40 + len(other.ids))
            hidden = reader.read([[kept, other, last]])
            expected = tiny_fim.plain_logits(MODEL, [*kept.ids, *other.ids, 7])[-1]
            torch.testing.assert_close(reader.logits(hidden[last])[0], expected, atol=1e-4, rtol=1e-4)
            reader.drop(other)
            other = reader.new()
    assert max(row for track in reader.tracks for row in track.rows) < 40 + 2 * MAX_UNUSED
