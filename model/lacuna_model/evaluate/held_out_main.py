"""``lacuna evaluate --held-out``: engines, slots, steps and calibration on held-out files of every language."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lacuna_model import checksum, models
from lacuna_model.engine import Engine
from lacuna_model.errors import RequestError
from lacuna_model.evaluate.engines import STEPS, EngineFiller, available_engines
from lacuna_model.evaluate.held_out import Restored, restore
from lacuna_model.evaluate.held_out_report import HeldOutReport, Question, SlotScores, report
from lacuna_model.evaluate.held_out_texts import HeldOut, find_held_out
from lacuna_model.evaluate.prior_filler import PriorAlone
from lacuna_model.evaluate.records import Records
from lacuna_model.evaluate.runner import Filler, pick
from lacuna_model.loader import LoadedModel, load_model
from lacuna_model.params import DecodeOptions
from lacuna_model.train import run as training
from lacuna_model.train.validation import ValidationReport

Result = Restored | SlotScores
DEFAULT_CASES = 3
_SAMPLES = 4  # stretches whose slots are scored, for every case


def held_out_main(
    shards: Path,
    model: str,
    *,
    engines: Sequence[str] = (),
    languages: Sequence[str] = (),
    cases: int = DEFAULT_CASES,
    seed: int = 0,
    records: Path | None = None,
    plots: Path | None = None,
) -> HeldOutReport:
    """Measures a model on the held-out shards.

    ``cases`` are per language, and four times as many stretches of text are scored slot by slot; ``records`` keeps
    every result, and an evaluation that was interrupted goes on from there; ``plots`` is a folder for the pictures.
    Raises RequestError, ShardError or WeightsError.
    """
    draw = _plotting() if plots else None
    found = find_held_out(shards, languages)
    if not models.find(model).adapter:
        raise RequestError(f"--held-out scores an adapter slot by slot, and {model} has none")
    loaded = load_model(model)
    files = {language: HeldOut(paths, language, loaded.tokenizer) for language, paths in found.items()}
    fillers = pick(held_out_engines(loaded, files), engines)
    adapter = models.adapter_path(models.find(model))
    question = Question(model, checksum.sha256(adapter), tuple(files), cases, _SAMPLES * cases, seed)
    base = training.Base(models.path(models.find(model)))
    canvas = base.load_canvas(adapter)

    def score(language: str) -> ValidationReport:
        return training.score_held_out(base, canvas, shards, num_samples=question.samples, language=language)

    with Records(records, question, msgspec.json.Decoder(Result)) as kept:
        results = list(measure(question, files, fillers, score, loaded.tokenizer.encode, kept))
    figures = report(question, results)
    if draw and plots:
        draw(figures, plots)
    return figures


def held_out_engines(
    model: LoadedModel, files: Mapping[str, HeldOut], options: Mapping[str, DecodeOptions] = STEPS
) -> dict[str, Callable[[], Filler]]:
    """How to build what is compared: ours, the base left to right, the workspace prior alone, and ours by steps.

    Ours by steps shares one context cache, so that a case's context is encoded once.
    """
    engine = Engine(model)
    return {
        **available_engines(model),
        "prior": lambda: PriorAlone(model.tokenizer, lambda request: files[request.language].segments(request)),
        **{name: partial(EngineFiller, engine, name=name, options=chosen) for name, chosen in options.items()},
    }


def measure(
    question: Question,
    files: Mapping[str, HeldOut],
    fillers: Sequence[Filler],
    score: Callable[[str], ValidationReport],
    encode: Callable[[str], list[int]],
    kept: Records[Result],
) -> Iterator[Result]:
    """All results, those found in ``kept`` among them: the fills of every case, engines taking turns, then slots."""
    filled = {(one.engine, one.language, one.number) for one in kept.found if isinstance(one, Restored)}
    scored = {one.language for one in kept.found if isinstance(one, SlotScores)}
    yield from kept.found
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("held-out files", total=len(files) * (question.cases * len(fillers) + 1))
        for language, texts in files.items():
            progress.update(task, description=f"gaps in {language}")
            for number, case in enumerate(texts.cases(question.cases, question.seed)):
                for filler in fillers:
                    if (filler.name, language, number) not in filled:
                        restored = restore(case, number, filler, encode)
                        kept.add(restored)
                        yield restored
                    progress.advance(task)
            progress.update(task, description=f"slots in {language}")
            if language not in scored:
                slots = SlotScores(language, score(language))
                kept.add(slots)
                yield slots
            progress.advance(task)


def _plotting() -> Callable[[HeldOutReport, Path], list[Path]]:
    try:
        from lacuna_model.evaluate.plots import draw
    except ImportError as error:
        raise RequestError("plots need matplotlib: pip install 'lacuna-code[evaluate]'") from error
    return draw
