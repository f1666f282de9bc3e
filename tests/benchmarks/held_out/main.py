"""The command ``evaluate --held-out``: evaluates engines on gaps in held-out files of every language."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tests.benchmarks.held_out.measure import Restored, restore
from tests.benchmarks.held_out.tables import HeldOutReport, Question, report
from tests.benchmarks.held_out.texts import HeldOut, find_held_out
from tests.benchmarks.tasks.engines import compared_by_default, compared_engines
from tests.benchmarks.tasks.records import Records, subject
from tests.benchmarks.tasks.runner import Filler, pick

from lacuna_model.backends.readers import load_tokenizer

DEFAULT_CASES = 3


def held_out_main(
    corpus: Path,
    model: str,
    *,
    engines: Sequence[str] = (),
    languages: Sequence[str] = (),
    cases: int = DEFAULT_CASES,
    seed: int = 0,
    records: Path | None = None,
) -> HeldOutReport:
    """Evaluates engines on the held-out files of a corpus.

    ``cases`` is per language. ``records`` stores every result, and an interrupted evaluation resumes from there.
    Raises CorpusError, RequestError or WeightsError.
    """
    found = find_held_out(corpus, languages)
    tokenizer = load_tokenizer(model)
    files = {language: HeldOut(path, language) for language, path in found.items()}
    fillers = pick(compared_engines(model), engines or compared_by_default(model))
    question = Question(subject(model), tuple(files), cases, seed)
    with Records(records, question, msgspec.json.Decoder(Restored)) as kept:
        results = list(measure(question, files, fillers, tokenizer.encode, kept))
    return report(question, results)


def measure(
    question: Question,
    files: Mapping[str, HeldOut],
    fillers: Sequence[Filler],
    encode: Callable[[str], list[int]],
    kept: Records[Restored],
) -> Iterator[Restored]:
    """Yields all results, first those in ``kept``, then the fills of the other cases, the engines in turn."""
    filled = {(one.engine, one.language, one.number) for one in kept.found}
    yield from kept.found
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("held-out files", total=len(files) * question.cases * len(fillers))
        for language, texts in files.items():
            progress.update(task, description=f"gaps in {language}")
            for number, case in enumerate(texts.cases(question.cases, question.seed)):
                for filler in fillers:
                    if (filler.name, language, number) not in filled:
                        restored = restore(case, number, filler, encode)
                        kept.add(restored)
                        yield restored
                    progress.advance(task)
