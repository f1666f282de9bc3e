"""A smaller model's drafts: they change the number of passes, never the fill, and are made once its prompt is read."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest import mock

import pytest
from msgspec.structs import replace as replace_field
from tests.model import gguf_files, tiny, tiny_drafter
from tests.model.fim import tiny_fim
from tests.model.fim.drafting.test_model_drafts import Certain

from lacuna_model.backends.readers import NONE, Loaded, load, new_cache
from lacuna_model.core.errors import WeightsError
from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, InfillResult, ReadContext, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.context import SOON_ROWS, FimContext
from lacuna_model.fim.draft_model import can_draft
from lacuna_model.fim.drafting import drafter_file, masks_file
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.pieces import CPU_ROWS, EARNED_A_PASS
from lacuna_model.hub import models
from lacuna_model.network.drafter import Drafter


def drafted_by(smaller: int, seed: int = 0) -> LoadedFim:
    """The tiny model of one seed, with that of another as its smaller model."""
    return replace(tiny_fim.loaded(seed), smaller=tiny_fim.loaded(smaller))


def cascade(seed: int) -> LoadedFim:
    """The tiny model with a random drafter of its own."""
    return replace(tiny_fim.loaded(seed), drafter=tiny_drafter.random(seed))


def request(*cuts: tuple[int, int], text: str = tiny.CODE, drafter: bool = True, **more: object) -> InfillRequest:
    regions = tuple(Region(first, last, max_tokens=14) for first, last in cuts)
    options = DecodeOptions(**{"syntax": False, "prior": False, "drafter": drafter} | more)
    return InfillRequest(text=text, regions=regions, path="a.py", options=options)


def read_ahead(engine: Engine, asked: InfillRequest) -> InfillResult:
    """The fill of a request whose context was encoded before."""
    engine.fill(replace_field(asked, task=ReadContext()))
    return engine.fill(asked)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("syntax", [False, True])
@pytest.mark.parametrize("prior", [False, True])
def test_fills_do_not_depend_on_the_smaller_model(seed: int, syntax: bool, prior: bool) -> None:
    cuts = [(40 + 9 * seed, 60 + 9 * seed), (200 + seed, 230 + seed)]
    for chosen in (cuts[:1], cuts):
        alone = Engine(tiny_fim.loaded(seed)).fill(request(*chosen, syntax=syntax, prior=prior))
        for smaller in (tiny_fim.loaded(seed), cascade(seed + 1)):
            drafting = replace(drafted_by(0, seed), smaller=smaller)
            drafted = read_ahead(Engine(drafting), request(*chosen, syntax=syntax, prior=prior))
            assert drafted.fills == alone.fills


def test_other_candidates_do_not_depend_on_it() -> None:
    asked = replace_field(request((40, 60)), task=FillGaps(3))
    alone = Engine(tiny_fim.loaded()).fill(asked)
    drafted = read_ahead(Engine(drafted_by(0)), asked)
    assert (drafted.fills, drafted.alternatives) == (alone.fills, alone.alternatives)


def test_a_model_that_writes_the_same_saves_passes() -> None:
    asked = request((40, 60))
    alone = read_ahead(Engine(tiny_fim.loaded()), asked)
    drafted = read_ahead(Engine(drafted_by(0)), asked)
    assert drafted.fills == alone.fills
    assert drafted.stats.nfe < alone.stats.nfe / 2


def test_its_own_drafter_saves_it_passes() -> None:
    asked = request((40, 60))
    text = tiny_fim.loaded().tokenizer.encode(Engine(tiny_fim.loaded()).fill(asked).fills[0])
    passes: dict[bool, int] = {}
    for knowing in (False, True):
        drafter = cast(Drafter, Certain(text)) if knowing else None
        smaller = replace(tiny_fim.loaded(), drafter=drafter)
        counted = mock.Mock(wraps=smaller.transformer.hidden)
        smaller.transformer.hidden = counted  # type: ignore[method-assign]
        read_ahead(Engine(replace(drafted_by(0), smaller=smaller)), asked)
        passes[knowing] = counted.call_count
    assert passes[True] < passes[False]


def test_it_drafts_at_once_after_a_change_that_is_short() -> None:
    engine = Engine(drafted_by(0))
    read_ahead(engine, request((40, 60)))
    typed = tiny.CODE[:40] + "x" + tiny.CODE[40:]
    alone = Engine(tiny_fim.loaded()).fill(request((41, 61), text=typed))
    drafted = engine.fill(request((41, 61), text=typed))
    assert drafted.fills == alone.fills
    assert drafted.stats.nfe < alone.stats.nfe


def test_a_long_prompt_is_read_once_passes_without_drafts_have_paid_for_it() -> None:
    context = new_cache(drafted_by(1))
    assert isinstance(context, FimContext)
    context.update(tiny_fim.laid_out(tiny_fim.loaded(), "x = 1\n" * 60, ""))
    smaller = context.smaller
    assert smaller is not None
    missing = smaller.num_unread
    assert missing > SOON_ROWS
    passes = 0
    while not smaller.catch_up(0):
        passes += 1
    assert missing / EARNED_A_PASS <= passes <= missing / EARNED_A_PASS + missing / CPU_ROWS + 1
    assert smaller.num_unread <= SOON_ROWS


def test_the_cache_of_a_document_counts_the_keys_of_both() -> None:
    both, one = new_cache(drafted_by(1)), new_cache(tiny_fim.loaded())
    assert both.num_bytes == 2 * one.num_bytes


def test_models_of_other_tokens_do_not_draft_for_each_other() -> None:
    model = tiny_fim.loaded()
    tokens = ("other", *model.tokenizer.vocabulary.tokens[1:])
    other = replace(model, tokenizer=type(model.tokenizer)(replace_field(model.tokenizer.vocabulary, tokens=tokens)))
    assert can_draft(tiny_fim.loaded(1), model)
    assert not can_draft(other, model)


@pytest.fixture
def file(tmp_path: Path, cache: Path) -> Path:
    """A GGUF file of the tiny model, and a cache of its own."""
    return gguf_files.write_fim(tmp_path / "tiny.gguf")


def smaller_of(model: Loaded) -> str | None:
    assert isinstance(model, LoadedFim)
    return None if model.smaller is None else model.smaller.name


def test_a_named_model_drafts(file: Path) -> None:
    assert smaller_of(load(str(file), threads=1, draft_model=str(file))) == str(file)
    assert smaller_of(load(str(file), threads=1)) is None  # the registry's small model is larger


def test_a_named_model_of_other_tokens_is_one_line(file: Path, tmp_path: Path) -> None:
    tokens = ("other", *tiny_fim.VOCABULARY.tokens[1:])
    other = gguf_files.write_fim(tmp_path / "other.gguf", vocabulary=replace_field(tiny_fim.VOCABULARY, tokens=tokens))
    with pytest.raises(WeightsError, match=r"other\.gguf has other tokens than .*tiny\.gguf, so it cannot draft"):
        load(str(file), threads=1, draft_model=str(other))


def test_the_small_model_drafts_where_it_is_here(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = models.find(models.SMALL_MODEL)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    known = replace(info, parameters=1, filename="tiny.gguf", size=file.stat().st_size, sha256=sha256)
    monkeypatch.setattr(models, "MODELS", (known,))
    monkeypatch.setattr(drafter_file, "shipped", lambda name: None)  # it is that of the real model
    monkeypatch.setattr(masks_file, "shipped", lambda name: None)
    assert smaller_of(load(str(file), threads=1)) is None
    place = models.location(known)
    place.parent.mkdir(parents=True)
    place.write_bytes(file.read_bytes())
    assert smaller_of(load(str(file), threads=1)) == models.SMALL_MODEL
    assert smaller_of(load(str(file), threads=1, draft_model=NONE)) is None


def test_a_model_drafts_for_those_with_twice_its_weights() -> None:
    assert models.drafting(models.find(models.LARGE_MODEL).parameters) == models.find(models.SMALL_MODEL)
    assert models.drafting(models.find(models.SMALL_MODEL).parameters) is None
