"""Training makes drafts hold, goes on where it stopped, and leaves a file that the engine reads."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.model import tiny
from tests.model.elsewhere import ELSEWHERE, Elsewhere
from tests.model.fim import tiny_fim
from tests.model.test_elsewhere import model as elsewhere_model
from tests.training.corpora import corpus

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.drafting import drafter_file
from lacuna_model.network.devices import HOST
from training.drafting import main
from training.drafting.training import anchors
from training.examples.prompts import tokens_a_pass
from training.examples.reading import Examples, read
from training.stored.packages import CorpusError

MODEL = tiny_fim.loaded()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A corpus of one text, and training in small pieces."""
    for name, value in {"COUNTED_TEXTS": 8, "BATCH": 128, "FIRST_TOKENS": 400, "HELD_OUT_PROMPTS": 2}.items():
        monkeypatch.setattr(main, name, value)
    return corpus(tmp_path / "corpus", python=[tiny.CODE * 2])


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_training_makes_drafts_hold(small: Path, tmp_path: Path) -> None:
    said: list[str] = []
    begun = main.train(MODEL, small, tmp_path / "out", steps=1, inner_size=64, threads=1, say=said.append)
    trained = main.train(MODEL, small, tmp_path / "out", steps=150, inner_size=64, threads=1, say=said.append)
    assert trained.accepted[0] > begun.accepted[0] + 0.2
    assert "tokens a pass" in said[-1]


def test_training_goes_on_where_it_stopped(small: Path, tmp_path: Path) -> None:
    first = main.train(MODEL, small, tmp_path / "out", steps=6, inner_size=64, threads=1, say=lambda line: None)
    second = main.train(MODEL, small, tmp_path / "out", steps=6, inner_size=64, threads=1, say=lambda line: None)
    assert second.anchors > first.anchors
    assert second.tokens >= first.tokens
    assert second.seconds > first.seconds


def test_a_checkpoint_of_another_version_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    torch.save({"state": {}}, tmp_path / "out" / main.CHECKPOINT)
    with pytest.raises(CorpusError, match="another version, without optimizer, progress, vocabulary"):
        main.train(MODEL, small, tmp_path / "out", steps=1, inner_size=64, threads=1, say=lambda line: None)


def test_training_begins_from_the_drafter_that_ships(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = main.train(MODEL, small, tmp_path / "out", steps=150, inner_size=64, threads=1, say=lambda line: None)
    monkeypatch.setattr(drafter_file, "shipped", lambda name: tmp_path / "out" / main.ARTEFACT)
    second = main.train(MODEL, small, tmp_path / "other", steps=1, inner_size=32, threads=1, say=lambda line: None)
    assert second.accepted[0] == pytest.approx(first.accepted[0], abs=0.1)


def test_the_result_drafts_in_the_engine_and_changes_no_fill(small: Path, tmp_path: Path) -> None:
    main.train(MODEL, small, tmp_path / "out", steps=60, inner_size=64, threads=1, say=lambda line: None)
    drafter = drafter_file.read(tmp_path / "out" / main.ARTEFACT, MODEL.transformer, None)
    model = replace(MODEL, drafter=drafter)
    region = Region(100, 130, max_tokens=14)
    results = [
        Engine(model).fill(
            InfillRequest(
                text=tiny.CODE, regions=(region,), options=DecodeOptions(prior=False, drafter=drafts, syntax=False)
            )
        )
        for drafts in (False, True)
    ]
    assert results[0].fills == results[1].fills


def test_an_anchor_ends_where_the_text_is_not_the_base_s_own() -> None:
    ids = MODEL.tokenizer.encode(tiny.CODE)[:40]
    one = read(MODEL, ids)
    batch = anchors(one, 3, 0)
    for place in range(len(ids) - 3):
        wanted = [True]
        for slot in (1, 2):
            wanted.append(wanted[-1] and ids[place + slot + 1] == int(one.greedy[place + slot]))
        assert batch.valid[place].tolist() == wanted


def test_format_tokens_are_no_anchors() -> None:
    one = Examples(
        tokens=torch.arange(8),
        hidden=torch.zeros(8, 4),
        greedy=torch.arange(1, 9),
        ordinary=torch.tensor([True, True, True, False, True, True, True, True]),
    )
    assert anchors(one, 2, 0).valid.tolist() == [
        [True, True],
        [True, False],
        [False, False],
        [False, False],
        [True, True],
        [True, True],
    ]


def test_tokens_a_pass_count_drafts_while_all_before_them_hold() -> None:
    assert tokens_a_pass([]) == 1.0
    assert tokens_a_pass([0.5, 0.5]) == pytest.approx(1.75)
    assert tokens_a_pass([0.0, 1.0]) == 1.0


def test_training_on_another_device_gives_the_same_drafter_and_is_resumed_on_a_cpu(small: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 3, "inner_size": 64, "threads": 1, "say": lambda line: None}
    torch.manual_seed(1)
    here = main.train(elsewhere_model(HOST), small, tmp_path / "here", **options)
    torch.manual_seed(1)
    with Elsewhere():
        there = main.train(elsewhere_model(ELSEWHERE), small, tmp_path / "there", **options)
    assert there.accepted == here.accepted
    one, other = (load_file(tmp_path / name / main.ARTEFACT) for name in ("here", "there"))
    assert one.keys() == other.keys()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert main.train(MODEL, small, tmp_path / "there", **options).anchors > there.anchors
