"""What the base reads in pieces equals what it reads in one go, and nothing is read twice."""

import random
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from lacuna_model.base_side import BaseSide
from lacuna_model.canvas import Canvas
from lacuna_model.context import Layout, lay_out
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.transformer import NoStore

from . import tiny

BLOCK = 5


@pytest.fixture
def layout(model: LoadedModel) -> Layout:
    parts = (tiny.CODE[:120], tiny.CODE[130:200], tiny.CODE[210:])
    return lay_out(parts, model.tokenizer, reserve=lambda _: 64, hole=64)


@pytest.fixture
def side(model: LoadedModel, layout: Layout) -> BaseSide:
    cache = ContextCache(model.base)
    cache.update(layout)
    return BaseSide(model.base, cache, layout)


@pytest.fixture(autouse=True)
def without_gradient() -> Iterator[None]:
    with torch.inference_mode():
        yield


def opened(layout: Layout) -> list[Canvas]:
    canvases = [Canvas(layout.gaps[0], BLOCK, 20, candidate=candidate) for candidate in range(2)]
    for canvas in canvases:
        canvas.open_block()
    return canvases


def expected(model: LoadedModel, layout: Layout, canvas: Canvas, tokens: list[int]) -> Tensor:
    """The base's logits of the slots from the frontier on, from one pass over the text up to them."""
    text = [*layout.before.ids, *canvas.done, *tokens[:-1]]
    positions = [*layout.before.positions, *range(canvas.gap.position, canvas.gap.position + len(text))]
    mask = torch.ones((len(text), len(text)), dtype=torch.bool).tril()
    hidden = model.base.hidden(
        model.base.embed(torch.tensor([text])), torch.tensor(positions[: len(text)]), NoStore(), mask
    )
    return model.base.head(hidden[0, canvas.frontier - BLOCK :])


@pytest.mark.parametrize("seed", range(4))
def test_reading_in_pieces_is_reading_in_one_go(model: LoadedModel, layout: Layout, side: BaseSide, seed: int) -> None:
    rng = random.Random(seed)
    canvases = opened(layout)
    side.make_room(2 * (BLOCK + 1))
    for _ in range(3):
        while not all(canvas.is_full for canvas in canvases):
            going_on = [canvas for canvas in canvases if not canvas.is_full]
            drafts = [[rng.randrange(5, 200) if t is None else t for t in canvas.slots] for canvas in going_on]
            for canvas, draft, said in zip(going_on, drafts, side.next_logits(going_on, drafts), strict=True):
                torch.testing.assert_close(said, expected(model, layout, canvas, draft), atol=1e-4, rtol=1e-4)
                held = rng.randint(1, BLOCK - canvas.frontier)
                for slot in range(canvas.frontier, canvas.frontier + held):
                    # The last one is often another than the draft had.
                    canvas.slots[slot] = draft[slot] if rng.random() < 0.8 else rng.randrange(5, 200)
        side.finish_block(canvases, guided=True)
        side.make_room(2 * (BLOCK + 1))
        for canvas in canvases:
            canvas.open_block()


def test_a_token_is_read_once_and_the_last_one_again(model: LoadedModel, layout: Layout, side: BaseSide) -> None:
    canvas = opened(layout)[0]
    rows: list[int] = []
    embed = model.base.embed
    model.base.embed = lambda ids: rows.append(ids.shape[1]) or embed(ids)  # type: ignore[func-returns-value]
    try:
        side.next_logits([canvas], [[5, 6, 7, 8, 9]])
        canvas.slots[:3] = [5, 6, 7]
        side.next_logits([canvas], [[5, 6, 7, 8, 9]])
        canvas.slots[3:] = [30, 31]
        side.finish_block([canvas], guided=True)
        canvas.open_block()
        side.next_logits([canvas], [[5, 6, 7, 8, 9]])
    finally:
        model.base.embed = embed
    # anchor and four; the third of them and the draft behind it; the rejected one; the last one and four.
    assert rows == [5, 2, 1, 5]


def test_more_room_for_the_canvas_moves_nothing_over_it(model: LoadedModel, layout: Layout, side: BaseSide) -> None:
    canvas = opened(layout)[0]
    draft = [5, 6, 7, 8, 9]
    side.next_logits([canvas], [draft])
    canvas.slots[:2] = draft[:2]
    side.make_room(40)
    (said,) = side.next_logits([canvas], [draft])
    torch.testing.assert_close(said, expected(model, layout, canvas, draft), atol=1e-4, rtol=1e-4)
    assert side.finished_rows(0) == []
    canvas.slots[2:] = draft[2:]
    side.finish_block([canvas], guided=False)
    assert side.finished_rows(0) == list(range(side.canvas_start - BLOCK, side.canvas_start))


def test_log_probabilities_are_those_of_the_text_in_one_go_and_leaves_nothing_behind(
    model: LoadedModel, layout: Layout, side: BaseSide
) -> None:
    tokens, draft = [20, 30, 40, 50, 60], [21, 22, 23, 24, 25]
    (canvas, _) = opened(layout)
    side.next_logits([canvas], [draft])
    rows = expected(model, layout, canvas, tokens).log_softmax(-1)
    wanted = rows[range(BLOCK), tokens].tolist()
    for _ in range(2):
        assert side.log_probabilities(layout.gaps[0], tokens) == pytest.approx(wanted, abs=1e-3)
    canvas.slots[0] = 20
    (said,) = side.next_logits([canvas], [[20, *draft[1:]]])
    torch.testing.assert_close(said, expected(model, layout, canvas, [20, *draft[1:]]), atol=1e-4, rtol=1e-4)


def test_continuations_are_read_apart_behind_what_is_written(
    model: LoadedModel, layout: Layout, side: BaseSide
) -> None:
    (canvas, _) = opened(layout)
    canvas.slots[:2] = [20, 30]
    runs = [[40, 50, 60], [41], [43, 53]]
    found = side.continuations(layout.gaps[0], canvas.tokens(), runs)
    for run, said in zip(runs, found, strict=True):
        wanted = expected(model, layout, canvas, [20, 30, *run, *[0] * (3 - len(run))])
        torch.testing.assert_close(said, wanted[: len(run)], atol=1e-4, rtol=1e-4)
