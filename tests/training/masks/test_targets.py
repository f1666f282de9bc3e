"""The prompts of mask rows hold what the model itself says, and are added to where they stopped."""

from pathlib import Path

import pytest
from tests.model import tiny
from tests.model.fim import tiny_fim
from tests.training.corpora import corpus

from training.masks import targets
from training.masks.targets import make
from training.packages import CorpusError

MODEL = tiny_fim.loaded()


def test_prompts_are_added_to_those_in_the_file(tmp_path: Path) -> None:
    texts = corpus(tmp_path / "corpus", python=[tiny.CODE * 2])
    first = make(MODEL, texts, tmp_path / "out", split="train", count=2, threads=1)
    done: list[int] = []
    make(MODEL, texts, tmp_path / "out", split="train", count=5, threads=1, advance=done.append)
    found = targets.written(tmp_path / "out")
    assert done == [2, 1, 1, 1]
    assert len(found) == 5
    assert found[:2] == first
    assert len({tuple(one.ids) for one in found}) == 5
    for one in found:
        assert one.greedy == tiny_fim.plain_logits(MODEL, list(one.ids)).argmax(-1).tolist()


def test_a_file_that_holds_no_prompts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"words")
    with pytest.raises(CorpusError, match="cannot be read") as caught:
        make(MODEL, tmp_path, tmp_path / "out", split="train", count=1, threads=1)
    assert "\n" not in str(caught.value)
