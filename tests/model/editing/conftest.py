"""An engine whose model writes a given text, whatever it is asked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.model.fim import tiny_fim
from tests.model.loading.test_chat import SPECIALS, TEMPLATE
from torch import Tensor

from lacuna_model.engine import Engine
from lacuna_model.fim.passes import Wanted
from lacuna_model.fim.reading import FimReader
from lacuna_model.loading.chat import ChatTemplate

Writes = Callable[[str], Engine]


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    """Makes an engine whose model writes a text as the only answer to every prompt, and then a fence.

    The text begins where the model begins to write: after the indentation of the part's first line.
    """
    plain = tiny_fim.loaded()
    model = replace(plain, config=plain.config)
    vars(model)["chat"] = ChatTemplate(TEMPLATE, SPECIALS)
    real = FimReader._pass
    script: list[int] = []

    def scripted(self: FimReader, turns: Sequence[Any], wanted: Wanted) -> list[tuple[Tensor, Tensor]]:
        found = []
        for turn, (states, logits) in zip(turns, real(self, turns, wanted), strict=True):
            logits = torch.full_like(logits, -20.0)
            for row in range(len(logits)):
                written = [*turn.known, *turn.draft[:row]]
                token = script[len(written)] if script[: len(written)] == written and len(written) < len(script) else 2
                logits[row, token] = 20.0
            found.append((states, logits))
        return found

    monkeypatch.setattr(FimReader, "_pass", scripted)

    def engine(text: str) -> Engine:
        script[:] = model.tokenizer.encode(text)
        return Engine(model)

    return engine
