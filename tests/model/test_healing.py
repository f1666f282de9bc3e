from collections.abc import Sequence

import pytest
import torch

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.healing import lead


def said(model: LoadedFim, text: str, probability: float) -> torch.Tensor:
    """Log-probabilities of a token and, evenly, of all others."""
    (token,) = model.tokenizer.encode(text)
    row = torch.full((model.tokenizer.vocab_size,), (1 - probability) / (model.tokenizer.vocab_size - 1))
    row[token] = probability
    return row.log()


def nobody(_tokens: Sequence[int]) -> Sequence[torch.Tensor]:
    raise AssertionError("asked for nothing")


def test_nobody_is_asked_where_one_token_is_likely_to_hold_all(model: LoadedFim) -> None:
    assert lead(b" def", said(model, " def", 0.6), model.prefixes, nobody) is None


@pytest.mark.parametrize(("going_on", "split"), [("def", True), ("x", False)])
def test_healed_text_is_split_if_its_rest_is_likely_too(model: LoadedFim, going_on: str, split: bool) -> None:
    (space,), asked = model.tokenizer.encode(" "), []

    def probe(tokens: Sequence[int]) -> list[torch.Tensor]:
        asked.extend(tokens)
        return [said(model, going_on, 0.9999) for _ in tokens]

    assert lead(b" def", said(model, " ", 0.9), model.prefixes, probe) == (space if split else None)
    assert asked == [space]
