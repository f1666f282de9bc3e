"""The pack of the training run: other numbers of the tokens, the same model."""

import itertools
from pathlib import Path

import pytest
import torch
from tests.gpu import packed, packing
from tests.model import gguf_files, tiny
from tests.training.corpora import corpus

from lacuna_model.fim import preparing
from lacuna_model.fim.loading import load_fim
from lacuna_model.tokenizer import Tokenizer
from training.base import Base, dense
from training.examples import prompts, texts
from training.masks import targets
from training.masks.targets import make
from training.masks.training import plain_form

HOST = torch.device("cpu")


def test_renumbered_prompts_are_read_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    folder = corpus(tmp_path / "corpus", python=[tiny.CODE * 3, tiny.CODE[40:] + "~é€" * 200])
    make(load_fim(gguf, "tiny"), folder, tmp_path / "taught", split="held_out", count=2, threads=1)
    for module in (preparing, packing):
        monkeypatch.setattr(module, "FREQUENT_TOKENS", 64)
    monkeypatch.setattr(packing, "HELD_OUT", 2)
    monkeypatch.setattr(packing, "USED_UP", 200)
    about, weights = plain_form(gguf, drafts=True)
    options = {"tokens": 10_000, "taught": {"held_out_large": tmp_path / "taught"}}
    pack = packed.from_bytes(packed.to_bytes(packing.make(about, weights, folder, **options)))

    assert pack.about.config.vocab_size < about.config.vocab_size
    base, plain = pack.base(HOST, torch.float32), Base(about.config, dense(weights, about.config, HOST, torch.float32))
    tokenizer = Tokenizer(about.vocabulary)
    assert tokenizer.fim is not None
    held = itertools.islice(prompts(tokenizer, tokenizer.fim, texts(folder, "held_out", 1), 1), 2)
    taught = targets.read(tmp_path / "taught")
    before = [*held, *(ids.tolist() for ids in taught.ids)]
    after = [*pack.prompts["held_out"], *pack.prompts["held_out_large"]]
    for ids, one in zip(before, after, strict=True):
        found, wanted = base.read(one.ids[None]).states, plain.read(torch.tensor([ids])).states
        assert torch.allclose(found, wanted, atol=2e-2)
    for greedy, one in zip(taught.greedy, pack.prompts["held_out_large"], strict=True):
        sayable = greedy < 64
        assert torch.equal(one.greedy[sayable], greedy[sayable])
        assert (one.greedy[~sayable] >= 64).all()
    row, logits = pack.row
    assert torch.allclose(base.read(row[None]).states[0, -1] @ base.head.T, logits, atol=2e-2)
