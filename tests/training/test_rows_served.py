"""Rows from their training to a next edit and a fill: trained, written to a file, loaded, asked in the gap buffer."""

import dataclasses
from pathlib import Path
from random import Random

import msgspec
import pytest
from tests.training.test_base import BASE, MODEL
from tests.training.test_rows import behind, example

from lacuna_model.core.params import DecodeOptions, FollowChanges, InfillRequest, PastChange, Region
from lacuna_model.editing.editor import UNCHANGED
from lacuna_model.engine import Engine
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.loading import rows_file
from lacuna_model.network.linear import EDIT, INFILL
from training import rows
from training.edits import EditExample
from training.rows import RowsFit, edit, infill

BELOW = "".join(f"    total{row} = other_{row}(x{row})\n" for row in range(4))
STANDING = "\n    return value\n" + BELOW
FOLLOWED = example(STANDING.replace("value", "item"), STANDING)
# After this change nothing is to do.
LEFT = msgspec.structs.replace(FOLLOWED, old="y = 1\n", new="y = 2\n", updated=STANDING)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> LoadedFim:
    """The tiny model with edit rows that learnt the two examples, from the file that they are shipped in."""
    file = tmp_path_factory.mktemp("rows") / "tiny.edit.safetensors"
    fit = RowsFit(BASE, EDIT, rank=8, rate=1e-2)
    both = [one for one in (edit(some, MODEL.tokenizer, MODEL.fim) for some in (FOLLOWED, LEFT)) if one is not None]
    assert [one.is_nothing for one in both] == [False, True]
    for step in range(150):
        fit.step(both, 0.1 + step / 200)
    measured = fit.measure([both], MODEL.fim.ends)
    assert (measured.right, measured.begun, measured.silent) == (2, 1, 1)
    rows_file.write(file, *fit.kept())
    return dataclasses.replace(MODEL, transformer=rows_file.read(file, MODEL.layers))


def asked(done: EditExample, *, prior: bool = True) -> InfillRequest:
    """What an editor asks after a change: the lines below it are the region."""
    before = done.prefix + done.new
    start = len(before.encode())
    region = Region(start, start + len(done.standing.encode()), max_tokens=60)
    changes = (PastChange(done.path, "a\n", "b\n"), PastChange(done.path, "x = 0\n" + done.old, "x = 0\n" + done.new))
    text = before + done.standing + done.suffix
    # The tiny model's text is of no grammar.
    return InfillRequest(
        text, (region,), FollowChanges(changes), path=done.path, options=DecodeOptions(syntax=False, prior=prior)
    )


@pytest.mark.parametrize("prior", [True, False])
def test_what_was_learnt_is_written_behind_the_change(trained: LoadedFim, prior: bool) -> None:
    result = Engine(trained).fill(asked(FOLLOWED, prior=prior))
    assert (result.status, result.fills) == ("ok", (FOLLOWED.updated,))
    # The old lines are the draft, and their rest ends the fill without a pass.
    assert result.stats.nfe <= 7 < result.stats.tokens / 10
    assert len(result.likelihoods[0]) == FOLLOWED.updated.count("\n")


def test_where_nothing_is_to_do_nothing_is_written(trained: LoadedFim) -> None:
    result = Engine(trained).fill(asked(LEFT))
    assert (result.status, result.message, result.fills) == ("ok", UNCHANGED, (STANDING,))
    assert (result.stats.tokens, result.stats.nfe) == (0, 1)
    assert result.stats.context_tokens > result.stats.cached_tokens


def test_the_prompt_is_that_of_the_training(trained: LoadedFim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AFTER", 320)  # as much as is read of a text
    engine, sample = Engine(trained), edit(FOLLOWED, MODEL.tokenizer, MODEL.fim)
    engine.fill(asked(FOLLOWED))
    assert sample is not None
    with engine.sessions.running(FOLLOWED.path) as session:
        assert isinstance(session.cache, FimContext)
        tracks = session.cache.chain(0)
    ids = [token for track in tracks for token in track.ids]
    assert ids == list(sample.ids[: sample.answer - 1])
    assert [bool(track.kind) for track in tracks] == [False, False, False, True]
    assert len(tracks[-1].ids) == sample.answer - sample.first - 1


LINES = "".join(f"    total{row} = other_{row}(x{row})\n" for row in range(6))


def test_rows_of_fills_write_what_was_learnt(tmp_path: Path) -> None:
    lines = LINES.splitlines(keepends=True)
    line = lines[2].strip()
    drawn = (infill(LINES, MODEL.tokenizer, MODEL.fim, Random(seed)) for seed in range(200))
    one = next(one for one in drawn if one is not None and behind(one).strip() == line)
    fit = RowsFit(BASE, INFILL, rank=8, rate=1e-2)
    for step in range(60):
        fit.step([one], 0.1 + step / 100)
    rows_file.write(tmp_path / "tiny.infill.safetensors", *fit.kept())
    layers = rows_file.read(tmp_path / "tiny.infill.safetensors", MODEL.layers)
    at = LINES.index(line)
    text = LINES.replace(line, "", 1)
    wanted = InfillRequest(text, (Region(at, at, max_tokens=24),), path="p/a.py", options=DecodeOptions(syntax=False))
    engine = Engine(dataclasses.replace(MODEL, transformer=layers))
    result = engine.fill(wanted)
    assert result.fills == (line,)
    plain = Engine(MODEL).fill(wanted).fills
    assert plain != (line,)
    off = msgspec.structs.replace(wanted, options=DecodeOptions(syntax=False, tuned=False))
    assert engine.fill(off).fills == plain
    # The context has no additions: what was read of it is that of the model alone.
    with engine.sessions.running("p/a.py") as session:
        assert isinstance(session.cache, FimContext)
        chain = session.cache.chain(0)
    assert not any(track.kind for track in chain)
    assert [token for track in chain for token in track.ids] == list(one.ids[: one.first])
