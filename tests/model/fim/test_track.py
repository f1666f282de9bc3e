"""What passes ask of tracks is what their rows say, and hardly takes longer where the context is long."""

import tracemalloc

import torch

from lacuna_model.fim.tracks import TrackReader
from lacuna_model.network.gpu_layers import placed

from . import tiny_fim


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
            (seen,) = rows.part.seen
            found = placed([rows.part])
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
        found.append(rows.part.seen[0].before.on(torch.device("cpu")).tolist())
    assert found == [[[0, 0], [1, 0], [2, by], [3, by]] for by in (0, 0, 3, -1)]
