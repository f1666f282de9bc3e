"""Several gaps on a GPU: a row's result follows from its text, whatever was drafted for other gaps before.

Where there is no GPU, Triton is interpreted and graphs are repeated calls.
"""

import pytest
import torch
from tests.model import started
from tests.model.elsewhere import Elsewhere
from torch import Tensor

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
