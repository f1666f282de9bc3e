"""What passes ask of tracks is what their rows say, and hardly takes longer where the context is long."""

import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.fim.track import LEFT_OUT, UNREAD, Track
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.network.arena import RowList
from lacuna_model.network.gpu_layers import ArenaRows, placed

from . import tiny_fim


def become(track: Track, data: st.DataObject) -> None:
    track.become(data.draw(st.lists(st.integers(0, 2), max_size=6)), data.draw(st.integers(0, 1)))


def forget(track: Track, data: st.DataObject) -> None:
    track.forget_from(data.draw(st.integers(0, 6)))


def read(track: Track, data: st.DataObject) -> None:
    places = [place for place in track.unread if data.draw(st.booleans())]
    first = data.draw(st.integers(0, 20))
    track.place(places, np.arange(first, first + len(places)))


def leave_out(track: Track, data: st.DataObject) -> None:
    track.leave_out(np.array([data.draw(st.booleans()) for _ in track.ids], dtype=np.bool_))


def leave_none_out(track: Track, data: st.DataObject) -> None:
    track.leave_none_out()


STEPS: list[Callable[[Track, st.DataObject], None]] = [become, forget, read, leave_out, leave_none_out]


@given(st.data(), st.lists(st.tuples(st.integers(0, 2), st.sampled_from(STEPS)), max_size=12))
def test_what_is_asked_of_tracks_is_what_their_rows_say(
    data: st.DataObject, steps: list[tuple[int, Callable[[Track, st.DataObject], None]]]
) -> None:
    chain = [Track(), Track(), Track()]
    for number, step in steps:
        track = chain[number]
        step(track, data)
        rows = track.rows.tolist()
        used = [row for row in rows if row >= 0]
        assert len(rows) == len(track.ids)
        assert (track.num_unread, track.num_missing) == (rows.count(UNREAD), len(rows) - len(used))
        assert rows.count(LEFT_OUT) == track.num_missing - track.num_unread
        assert track.unread == [place for place, row in enumerate(rows) if row == UNREAD]
        assert (track.used.tolist(), track.at.end) == (used, max(used, default=-1) + 1)
        neighbours = all(after == row + 1 for row, after in pairwise(used))
        assert track.follows(used[0] if used else 0) == neighbours
        assert not used or not track.follows(used[0] + 1)
        *before, last = chain
        listed = last.through(before, RowList)
        assert listed.rows.tolist() == [row for one in chain for row in one.used.tolist()]
        assert last.through(before, RowList) is listed


def test_the_rows_of_a_track_are_not_written_to() -> None:
    track = Track()
    track.become([1, 2], 0)
    with pytest.raises(ValueError, match="read-only"):
        track.rows[0] = 3


def test_what_a_pass_allocates_and_copies_does_not_grow_with_the_context() -> None:
    """The list of what a fill attends to before itself stays on the device, also where the context has moved."""
    lengths, allocated, copied = (300, 3_000), list[int](), set[int]()
    for length in lengths:
        reader = TrackReader(tiny_fim.loaded().layers, torch.float32)
        head, suffix, fill = (reader.new() for _ in range(3))
        for track, count, start in ((suffix, length // 2, length // 2 - 1), (head, length // 2, 0)):
            track.become([5] * count, start)
            reader.next_rows([[track]])
        reader.move_to(suffix, length // 2)
        reader.arena.reserve(length + 50)
        ids, taken = [6], list[int]()
        for token in range(7, 13):
            ids.append(token)
            fill.become(ids, length)
            fill.forget_from(len(ids) - 2)
            tracemalloc.start()
            rows = reader.next_rows([[head, suffix, fill]])
            assert rows is not None
            (seen,) = rows.seen
            found = placed([ArenaRows(2, reader.arena, seen=rows.seen)])
            taken.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            copied.add(len(found.own) - len(ids))
            assert seen.order.tolist() == [*head.rows, *suffix.rows, *fill.rows]
            before = found.before[0].tolist()
            assert before == [[row, 0] for row in head.rows] + [[row, 1] for row in suffix.rows]
        allocated.append(min(taken))
    assert copied == {0}
    assert allocated[1] - allocated[0] < (lengths[1] - lengths[0]) / 10


def test_a_list_on_the_device_is_made_anew_where_a_track_has_moved() -> None:
    reader = TrackReader(tiny_fim.loaded().layers, torch.float32)
    head, suffix, fill = (reader.new() for _ in range(3))
    head.become([5, 6], 0)
    suffix.become([7, 8], 2)
    reader.next_rows([[head, suffix]])
    found = list[list[list[int]]]()
    for distance in (0, 0, 3, -1):
        reader.move_to(suffix, 2 + distance)
        fill.become([9], 8)
        fill.forget_from(0)
        rows = reader.next_rows([[head, suffix, fill]])
        assert rows is not None
        found.append(rows.seen[0].before.on(torch.device("cpu")).tolist())
    assert found == [[[0, 0], [1, 0], [2, by], [3, by]] for by in (0, 0, 3, -1)]
