"""Prompts for training have the form that the engine reads, and the base's own next tokens."""

from itertools import islice
from pathlib import Path
from random import Random

import pytest
import torch
from tests.model import tiny
from tests.model.fim import tiny_fim
from tests.training.corpora import corpus

from training.examples import examples, read, texts
from training.feeding import prompt
from training.packages import CorpusError

MODEL = tiny_fim.loaded()
FIM = MODEL.fim


def test_a_prompt_has_the_prefix_the_suffix_and_the_fill_in_this_order() -> None:
    text = list(range(3, 60)) * 20
    found = prompt(text, MODEL.fim, Random(1))
    marks = [found.index(token) for token in (FIM.prefix, FIM.suffix, FIM.middle)]
    assert marks == sorted(marks)
    before, after, fill = found[marks[0] + 1 : marks[1]], found[marks[1] + 1 : marks[2]], found[marks[2] + 1 :]
    whole = ",".join(map(str, text))
    assert ",".join(map(str, [*before, *fill, *after])) in whole
    assert before
    assert fill


def test_the_base_says_its_own_next_token_after_every_token() -> None:
    ids = [FIM.prefix, *MODEL.tokenizer.encode(tiny.CODE[:120]), FIM.suffix, FIM.middle]
    found = read(MODEL, ids)
    assert found.greedy.tolist() == tiny_fim.plain_logits(MODEL, ids).argmax(-1).tolist()
    assert found.hidden.shape == (len(ids), MODEL.config.hidden_size)


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


def test_examples_are_drawn_by_the_seed(tmp_path: Path) -> None:
    path = corpus(tmp_path, python=[tiny.CODE * 4, tiny.CODE[::-1] * 4])
    first, again = ([one.tokens for one in islice(examples(MODEL, texts(path, "train", 5), 5), 3)] for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
