"""Several gaps on a GPU: a row's result follows from its text, whatever was drafted for other gaps before.

Where there is no GPU, Triton is interpreted and graphs are repeated calls.
"""

from collections.abc import Sequence

import pytest
import torch
from tests.model import started, tiny
from tests.model.elsewhere import Elsewhere
from torch import Tensor

from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, InfillResult, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.costs import DraftedToken
from lacuna_model.fim.drafts import Drafts
from lacuna_model.fim.loading import LoadedFim

pytest.importorskip("triton")
# Attention adds up so many keys at a time; the tokens of the text before both gaps, and between them.
KEYS, BEFORE, BETWEEN = 16, 6, 14


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> LoadedFim:
    """A model whose keys and values have this type: bfloat16, or 8 bit."""
    started.pretend(monkeypatch, triton=True)
    monkeypatch.setattr("lacuna_kernels.gpu.attend.KEYS", KEYS)
    with Elsewhere():
        return started.least(dtype)


@torch.inference_mode()
def second(loaded: LoadedFim, refused: int) -> list[Tensor]:
    """The states of the first token of a second gap, before and after ``refused`` drafts of the first one."""
    with Elsewhere():
        reader = loaded.tracks()
        head, between, first, other = (reader.new() for _ in range(4))
        head.become(range(5, 5 + BEFORE), 0)
        first.become(range(30, 31 + refused), BEFORE)
        reader.read([[head, first]])
        between.become(range(40, 40 + BETWEEN), BEFORE)
        reader.read([[head, between]])
        first.become([30], BEFORE)
        found = []
        for count in (1, 2):
            other.become(range(50, 50 + count), BEFORE + BETWEEN)
            found.append(reader.read([[head, between, other]])[other])
        return found


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8], ids=["bfloat16", "8bit"])
def test_a_row_is_the_same_bit_for_bit_after_refused_drafts_of_another_gap(loaded: LoadedFim) -> None:
    plain, drafted = second(loaded, 0), second(loaded, 9)
    assert all(map(torch.equal, plain, drafted))


def fill(loaded: LoadedFim, monkeypatch: pytest.MonkeyPatch, wrong: Sequence[int]) -> InfillResult:
    """Two candidates for a gap, with the tokens of ``wrong`` as drafts at each place."""

    def draft(self: Drafts, key: object, written: object, most: int, *rest: object) -> list[DraftedToken]:
        return [DraftedToken(token, 0.5, "project") for token in wrong[:most]]

    monkeypatch.setattr(Drafts, "draft", draft)
    gap = (Region(18, 21, max_tokens=2),)
    with Elsewhere():
        options = DecodeOptions(syntax=False)
        return Engine(loaded).fill(InfillRequest(tiny.CODE[:40], gap, FillGaps(2), options=options))


@pytest.mark.parametrize("dtype", [torch.int8], ids=["8bit"])
def test_fills_do_not_depend_on_drafts(loaded: LoadedFim, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, drafted = (fill(loaded, monkeypatch, wrong) for wrong in ((), (70, 71, 72)))
    assert (drafted.status, drafted.fills, drafted.alternatives) == (plain.status, plain.fills, plain.alternatives)
