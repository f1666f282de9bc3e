"""The model of the training run's pack, made whole again: with the tokens that the pack renumbered."""

from pathlib import Path

import pytest
import torch
from tests.benchmarks.tasks.dataset import Problem
from tests.gpu import packed, packing, real
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim
from tests.training.corpora import corpus

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.fim import loading
from training.base import dense
from training.masks import plain_form

HOST = torch.device("cpu")


def test_a_packed_model_fills_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    folder = corpus(tmp_path / "corpus", python=[tiny.CODE * 3])
    for module in (loading, packing, real):
        monkeypatch.setattr(module, "FREQUENT_TOKENS", 64)
    monkeypatch.setattr(packing, "HELD_OUT", 2)
    monkeypatch.setattr(packing, "USED_UP", 200)
    about, weights = plain_form(gguf, drafts=True)
    pack = packed.from_bytes(packed.to_bytes(packing.make(about, weights, folder, tokens=10_000, taught={})))
    problems = [Problem(f"SingleLineInfilling/{text}", "f", text, "", "", "") for text in (tiny.CODE[:30], "~é€")]
    real.write(tmp_path / "aside", real.aside(pack, about.vocabulary, weights, problems))
    aside = real.read(tmp_path / "aside")
    assert [one.prompt for one in aside.problems] == [tiny.CODE[:30]]  # the pack lacks tokens of the other one

    model = real.loaded(pack, aside, HOST, torch.float32)
    table = dense(weights, about.config, HOST, torch.float32)["embedding"]
    known = torch.tensor(sorted(aside.tokens))
    assert len(known) < about.config.vocab_size
    assert torch.allclose(model.layers.embed(known[None])[0], table[known], atol=1e-2)
    requests = [
        InfillRequest(tiny.CODE, (Region(at, at, max_tokens=4),), options=DecodeOptions(syntax=False))
        for at in (60, 90)
    ]
    alone, beside = (real.fill(model, requests, batch) for batch in (1, 2))
    assert [one.result.fills for one in alone] == [one.result.fills for one in beside]
    assert real.figures(alone, 2.0)["tokens"] == 2 * real.figures(alone, 2.0)["tokens_s"]
    assert model.fim.prefix == tiny_fim.FIM.prefix
    ways = list(real.ways(model, aside, short=False))
    assert len({way.name for way in ways}) == len(ways) == 10  # no task has two problems
    assert [way.model.cache_dtype for way in ways if way.kind == real.EIGHT_BIT] == [torch.int8] * 2
