"""Prompts for training have the form that the engine reads, and the base's own next tokens."""

from itertools import islice
from pathlib import Path
from random import Random

import pytest
from tests.model.fim import tiny_fim
from tests.training.corpora import corpus

from training.examples import texts
from training.packages import CorpusError

MODEL = tiny_fim.loaded()
FIM = MODEL.fim


def test_all_packages_and_languages_are_drawn_without_end(tmp_path: Path) -> None:
    rng = Random(3)
    go = [f"{number:03}" + "".join(rng.choices("abcdefgh", k=500)) for number in range(400)]
    path = corpus(tmp_path, go=go, python=["x" * 500])
    found = [text[:3] for text in islice(texts(path, "train", 0), 1000)]
    share = found.count("xxx") / len(found)
    assert 0 < share < 0.1
    numbers = [int(one) for one in found if one != "xxx"]
    assert min(numbers[:50]) < 100
    assert max(numbers[:50]) >= 300
    assert len(set(numbers)) > 300


def test_a_folder_without_a_corpus_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="python -m training corpus"):
        next(texts(tmp_path, "train", 0))
    short = corpus(tmp_path / "short", go=["x"])
    with pytest.raises(CorpusError, match="no text of"):
        next(texts(short, "train", 0))
