"""Fills of two readers of the same tokens: which are equal, how far the others lie apart, and what each took."""

import pytest
import torch
from tests.benchmarks.engine import two_readers
from tests.benchmarks.engine.two_readers import TwoReaders, margin
from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.fim.loading import LoadedFim

PLACES = (40, 120, 300)


def asked(at: int) -> InfillRequest:
    return InfillRequest(tiny.CODE, (Region(at, at, min_tokens=4, max_tokens=8),))


def test_the_same_weights_give_equal_fills(model: LoadedFim, llama_model: LoadedFim) -> None:
    bench = TwoReaders((model, llama_model))
    for at in PLACES:
        bench.add(asked(at))
    found = bench.report()
    assert (found.fills, found.equal, found.differing) == (3, 3, [])
    assert [one.reader for one in found.costs] == ["own", "libllama"]
    assert found.costs[0].tokens == found.costs[1].tokens > 0
    assert all(one.passes > 0 and one.ms >= one.encode_ms for one in found.costs)
    assert [table.row_count for table in two_readers.tables(found)] == [2, 1]


@pytest.mark.parametrize("seed", [1, 2])
def test_other_weights_give_fills_with_a_margin(model: LoadedFim, seed: int) -> None:
    bench = TwoReaders((model, tiny_fim.loaded(seed)))
    for at in PLACES:
        bench.add(asked(at))
    found = bench.report()
    assert found.equal + len(found.differing) == 3
    assert found.differing
    assert all(one.fills[0] != one.fills[1] and one.margin >= 0 for one in found.differing)
    assert found.ties(1e9) == len(found.differing)
    assert found.ties(0) == 0


def test_the_margin_is_that_of_the_best_tokens_by_the_reader_for_which_it_is_less() -> None:
    assert margin(torch.tensor([3.0, 2.5, -1.0]), torch.tensor([1.0, 4.0, 0.0])) == 0.5
    assert margin(torch.tensor([3.0, -2.0, -1.0]), torch.tensor([1.0, 2.0, 0.0])) == 1
    assert margin(torch.tensor([3.0, 2.5, -1.0]), torch.tensor([4.0, 1.0, 3.75])) == 0.25  # the same best token
