"""Training leaves a file that the engine reads, goes on where it stopped, and refuses what it cannot use."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import save_file
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim
from tests.model.fim.test_preparing import CONFIG, FOUR_BIT
from tests.training.corpora import corpus

from lacuna_kernels.native import WIDTH
from lacuna_model.fim import loading
from lacuna_model.fim.loading import load_fim
from lacuna_model.loading import rows_file
from training import masks
from training.base import Base, dense
from training.feeding import Sample
from training.loop import Asked
from training.masks import make, plain_form, read
from training.packages import CorpusError


@pytest.fixture
def gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny model's file; training in small pieces, kept after every step."""
    for name, value in {"BATCH": 128, "HELD_OUT": 2, "NOTICE_S": 0.0}.items():
        monkeypatch.setattr(masks, name, value)
    return gguf_files.write_fim(tmp_path / "tiny.gguf")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return corpus(tmp_path / "corpus", python=[tiny.CODE * 2])


def test_training_goes_on_where_it_stopped_and_leaves_a_file(gguf: Path, texts: Path, tmp_path: Path) -> None:
    said, shown = list[str](), list[int]()
    asked = Asked(
        path=gguf,
        corpus=texts,
        out=tmp_path / "out",
        steps=2,
        device="cpu",
        threads=1,
        say=said.append,
        advance=shown.append,
    )
    first = masks.train(asked)
    assert sum(shown) == 1000
    second = masks.train(asked)
    assert (first.steps, second.steps) == (2, 4)
    assert second.rows == 2 * first.rows
    assert second.seconds > first.seconds
    assert "tokens a pass" in said[-1]
    about, _ = plain_form(gguf, drafts=True)
    config, tensors = rows_file.stored(tmp_path / "out" / "masks.safetensors", about.config)
    assert config.slots == len(tensors["masks"]) + 1 == len(second.accepted)


def test_a_teacher_without_prompts_is_refused(gguf: Path, texts: Path, tmp_path: Path) -> None:
    masks.write(tmp_path / "none", [])
    with pytest.raises(CorpusError, match="has no prompts"):
        masks.train(Asked(path=gguf, corpus=texts, out=tmp_path, threads=1), teacher=tmp_path / "none")


def test_a_checkpoint_of_another_version_is_refused(gguf: Path, texts: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    torch.save({"state": {}}, tmp_path / "out" / "masks.pt")
    with pytest.raises(CorpusError, match="another version, without fit, progress"):
        masks.train(Asked(path=gguf, corpus=texts, out=tmp_path / "out"))


@pytest.mark.parametrize("wide", [False, True], ids=["of other sizes", "of the kernels' sizes"])
def test_the_weights_are_those_that_draft(tmp_path: Path, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = gguf_files.write_fim(tmp_path / "tiny.gguf")
    if wide:
        monkeypatch.setattr(loading, "FREQUENT_TOKENS", 64)
        tokens = tiny_fim.VOCABULARY.tokens
        more = replace(tiny_fim.VOCABULARY, tokens=(*tokens, *(f"<{n}>" for n in range(-len(tokens) % WIDTH))))
        config = replace(CONFIG, vocab_size=len(more.tokens))
        path = gguf_files.write(
            tmp_path / "wide.gguf", architecture="qwen2", config=config, vocabulary=more, four_bit=FOUR_BIT
        )
    about, form = plain_form(path, drafts=True)
    base = Base(about.config, dense(form, about.config, torch.device("cpu"), torch.float32))
    drafting = load_fim(path, "tiny", drafts=True, threads=1)
    ids = drafting.tokenizer.encode(tiny.CODE)[:40]
    wanted = read(drafting, ids)[0].float()
    alike = torch.nn.functional.cosine_similarity(base.read(torch.tensor([ids])).states[0], wanted, dim=-1)
    assert alike.min() > 0.98
    if wide:
        assert len(base.head) == 64
        assert "layers.0.qkv.blocks" in form


def test_files_of_prompts_keep_their_form(tmp_path: Path) -> None:
    kept = {"ids": [1, 2, 3, 5, 6], "greedy": [2, 3, 4, 6, 7], "lengths": [3, 2]}
    save_file({name: torch.tensor(numbers, dtype=torch.int32) for name, numbers in kept.items()}, tmp_path / "out")
    samples = masks.written(tmp_path / "out")
    assert samples == [Sample([1, 2, 3], [2, 3, 4]), Sample([5, 6], [6, 7])]
    masks.write(tmp_path / "again", samples)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "out").read_bytes()


def test_prompts_are_added_to_those_in_the_file(tmp_path: Path) -> None:
    texts = corpus(tmp_path / "corpus", python=[tiny.CODE * 2])
    first = make(tiny_fim.loaded(), texts, tmp_path / "out", split="train", count=2, threads=1)
    done: list[int] = []
    make(tiny_fim.loaded(), texts, tmp_path / "out", split="train", count=5, threads=1, advance=done.append)
    found = masks.written(tmp_path / "out")
    assert done == [2, 1, 1, 1]
    assert len(found) == 5
    assert found[:2] == first
    assert len({tuple(one.ids) for one in found}) == 5
    for one in found:
        assert one.greedy == tiny_fim.plain_logits(tiny_fim.loaded(), list(one.ids)).argmax(-1).tolist()


def test_a_file_that_holds_no_prompts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"words")
    with pytest.raises(CorpusError, match="cannot be read") as caught:
        make(tiny_fim.loaded(), tmp_path, tmp_path / "out", split="train", count=1, threads=1)
    assert "\n" not in str(caught.value)
