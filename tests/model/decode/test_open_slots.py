import pytest
import torch

from lacuna_model.core.context import Gap
from lacuna_model.decode.canvas import Canvas
from lacuna_model.decode.open_slots import RULED_OUT, restrict
from lacuna_model.fim.loading import LoadedFim


def allowed(model: LoadedFim, slots: list[int | None], prefix: bytes, done: list[int]) -> list[set[int]]:
    """The tokens that each slot of a block may hold."""
    canvas = Canvas(Gap(1, prefix), block_size=len(slots), budget=0, done=done, slots=slots)
    logits = torch.zeros((len(slots), model.tokenizer.vocab_size))
    rows = restrict(canvas, logits, model.prefixes, model.tokenizer.eog_id)
    return [set(torch.nonzero(row > RULED_OUT).flatten().tolist()) for row in rows]


@pytest.fixture
def text(model: LoadedFim) -> set[int]:
    """All text tokens and the end token."""
    return set(range(model.tokenizer.vocab_size)) - model.tokenizer.special_ids | {model.tokenizer.eog_id}


def test_a_fill_begins_with_the_healed_text(model: LoadedFim, text: set[int]) -> None:
    beginning = set(model.prefixes.starting_with(b" def").tolist())
    assert allowed(model, [None, None], b" def", []) == [beginning, text]
    (whole,) = model.tokenizer.encode(" def")
    assert allowed(model, [whole, None], b" def", []) == [beginning, text]
    assert allowed(model, [None], b" def", [whole]) == [text]


def test_the_first_part_of_the_healed_text_is_followed_by_its_rest(model: LoadedFim, text: set[int]) -> None:
    (space,), (rest,) = model.tokenizer.encode(" "), model.tokenizer.encode("def")
    going_on = set(model.prefixes.starting_with(b"def").tolist())
    assert allowed(model, [space, None, None], b" def", []) == [{space}, going_on, text]
    assert allowed(model, [space, rest, None], b" def", []) == [{space}, going_on, text]
