"""An engine whose model writes a given text, whatever it is asked."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from tests.model.fim import tiny_fim
from tests.model.loading.test_chat import SPECIALS, TEMPLATE
from torch import Tensor

from lacuna_model.decode.sampling import RULED_OUT
from lacuna_model.engine import Engine
from lacuna_model.fim.reading import FillInPass, FimReader
from lacuna_model.fim.track import EndRule
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
    real = FimReader._rules
    script: list[int] = []

    def scripted(self: FimReader, part: FillInPass) -> list[EndRule]:
        return [
            replace(rule, narrow=partial(say, [*part.known, *part.draft[:row]], rule))
            for row, rule in enumerate(real(self, part))
        ]

    def say(written: list[int], rule: EndRule, row: Tensor) -> None:
        """Make the script's next token the likeliest; what may not come is ruled out after that."""
        follows = script[: len(written)] == written and len(written) < len(script)
        row.fill_(-20.0)
        row[script[len(written)] if follows else model.tokenizer.eog_id] = 20.0
        if rule.early:
            row[model.tokenizer.eog_id] = RULED_OUT
        if rule.narrow is not None:
            rule.narrow(row)

    monkeypatch.setattr(FimReader, "_rules", scripted)

    def engine(text: str) -> Engine:
        script[:] = model.tokenizer.encode(text)
        return Engine(model)

    return engine
