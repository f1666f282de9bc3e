"""The commands ``syntax`` and ``unclean``: what the constraint admits and refuses, with a simulated model.

``syntax`` cuts gaps into files that parse. ``unclean`` completes lines in files that are cut off, broken or in newer
syntax, where the constraint must not refuse either.
"""

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
import numpy as np
import typer
from tests.benchmarks.constraint.synthetic import Case, SyntheticModel, cut_case
from tests.benchmarks.constraint.unclean import STATES, cut_cursors
from tests.benchmarks.figures import Row, grouped, show, times
from tests.benchmarks.records import Records

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.context import Gap, finished
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import with_fills
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.languages.registry import require_language
from lacuna_model.readers import load_tokenizer
from lacuna_model.syntax import SyntaxConstraint, language_for, parses
from lacuna_model.syntax.faults import all_faults
from lacuna_model.tokenizer import Tokenizer
from training.options import ModelOption

SMALLEST, LARGEST = 300, 60_000  # bytes of a file in a folder

Texts = Mapping[str, Sequence[bytes]]
NoiseOption = Annotated[
    float,
    typer.Option("--noise", min=0.0, max=1.0, help="Make the best token wrong in this share of slots; 1: in all."),
]
SeedOption = Annotated[int, typer.Option(help="Draw the files, gaps and errors with this random seed.")]
LanguagesOption = Annotated[str, typer.Option(help="Use only these languages, such as go,rust.")]
RecordsOption = Annotated[
    Path | None, typer.Option("--records", help="Write the fills of every case to this JSONL file.")
]
PathsArgument = Annotated[
    list[Path], typer.Argument(metavar="PATH...", exists=True, help="Source files, or folders of them.")
]


class Filled(msgspec.Struct, frozen=True):
    """The result for a case in a ``state``: the reason for a refusal or "", and the fills, none where it is refused.

    ``adds_error`` means that the file has more errors with the fills than with empty gaps and with the true texts.
    """

    language: str
    state: str
    reason: str
    fills: tuple[str, ...]
    truths: tuple[str, ...]
    parses: bool
    adds_error: bool
    ms: float


def filled(
    case: Case, tokens: Tokenizer, seed: Sequence[int], *, noise: float, foresight: int = 0, strict: bool = False
) -> Filled:
    """Fills a case with the constraint, and a model that knows the wanted text apart from some ``noise``.

    ``foresight`` is how many tokens the model writes at once (0: as many as the fill may have); ``strict`` is the
    constraint's.
    """
    model = SyntheticModel(case.truths, tokens, np.random.default_rng(seed), noise=noise, foresight=foresight)
    began = time.perf_counter()
    constraint = SyntaxConstraint(case.text, case.regions, case.language, tokens, strict=strict)
    fills = [Fill(Gap(index), region.max_tokens) for index, region in enumerate(case.regions)]
    verdict = finished(denoise(model, fills, [constraint], tokens, deadline=None)).verdict
    ms = (time.perf_counter() - began) * 1e3
    found, truths = verdict.fills or (), tuple(tokens.decode_bytes(truth).decode() for truth in case.truths)
    empty = [""] * len(truths)
    return Filled(
        language=case.language.name,
        state=case.state,
        reason="" if verdict.fills is not None else verdict.message or "refused",
        fills=tuple(found),
        truths=truths,
        parses=bool(found) and parses(with_fills(case.text, case.regions, found), case.language),
        adds_error=bool(found) and _errors(case, found) > max(_errors(case, empty), _errors(case, truths)),
        ms=ms,
    )


def _errors(case: Case, fills: Sequence[str]) -> int:
    """The number of errors in a case's file with these fills."""
    text = with_fills(case.text, case.regions, fills)
    tree = case.language.parser().parse(text)
    return len(all_faults(tree, text, case.language))


def cut_gaps(
    texts: Texts, tokens: Tokenizer, *, gaps: Sequence[int], slots: Sequence[int], count: int, seed: int
) -> Iterator[Case]:
    """So many cases for each language, number of gaps and size of gap, in texts that parse."""
    for (name, own), num_gaps, num_slots in product(texts.items(), gaps, slots):
        language, rng = require_language(name), np.random.default_rng([seed, num_gaps, num_slots])
        sound = [text for text in own if parses(text, language)]
        for index in range(count if sound else 0):
            text = sound[index % len(sound)]
            case = cut_case(text, language, tokens, rng, gaps=num_gaps, slots=num_slots, shape="lines")
            if case is not None:
                yield case


def sample(paths: Sequence[Path], most: int, seed: int, languages: str = "") -> dict[str, list[bytes]]:
    """Draws at most ``most`` files per language by ``seed``, from files and from all files in folders.

    Raises RequestError for an unknown language, and where there is none.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(file for given in paths for file in (_within(given) if given.is_dir() else [given])):
        language = language_for(str(path))
        if language is not None:
            found.setdefault(language.name, []).append(path)
    if not found:
        raise RequestError(f"{paths[0]}: no language is known for this name")
    rng = Random(seed)
    drawn = {name: [one.read_bytes() for one in rng.sample(own, min(most, len(own)))] for name, own in found.items()}
    wanted = [require_language(name).name for name in languages.split(",") if name]
    return {name: drawn.get(name, []) for name in wanted or drawn}


def _within(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder that a person may have written, by size and name."""
    for path in folder.rglob("*.*"):
        if path.is_file() and SMALLEST <= path.stat().st_size <= LARGEST and ".min." not in path.name:
            yield path


def rows(found: Sequence[Filled]) -> list[Row]:
    """The results per language and of all; *whole* counts the gaps whose fill is the true text.

    White space at its ends does not count. In a column for each state is what is refused there.
    """
    states = [state for state in STATES if any(one.state == state for one in found)]
    return [
        {
            "language": name,
            "cases": len(own),
            **{state: sum(one.state == state and bool(one.reason) for one in own) for state in states},
            "refused": sum(bool(one.reason) for one in own),
            "delivered, parse": sum(one.parses for one in own),
            "adding errors": sum(one.adds_error for one in own),
            "gaps": sum(len(one.truths) for one in own),
            "empty": sum(not fill.strip() for one in own for fill in one.fills),
            "whole": sum(a.strip() == b.strip() for one in own for a, b in zip(one.fills, one.truths, strict=False)),
            **times([one.ms for one in own]),
        }
        for name, own in grouped(found, lambda one: one.language).items()
    ]


def syntax(
    paths: PathsArgument,
    gaps: Annotated[str, typer.Option(help="Run cases with these numbers of gaps.")] = "1,2,3,8",
    slots: Annotated[str, typer.Option(help="Run cases with these numbers of slots per gap.")] = "4,16,48",
    cases: Annotated[int, typer.Option(min=1, help="Run so many cases for each of these and each language.")] = 25,
    noise: NoiseOption = 0.15,
    foresight: Annotated[
        int, typer.Option(min=0, help="Let the model write only this many tokens at once; 0: all.")
    ] = 0,
    files: Annotated[int, typer.Option(min=1, help="Use at most this many files per language.")] = 30,
    languages: LanguagesOption = "",
    seed: SeedOption = 0,
    records: RecordsOption = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps of files with a simulated model and the constraint: what is refused, parses and is as it was."""
    tokens, texts = load_tokenizer(model), sample(paths, files, seed, languages)
    numbers, sizes = [int(n) for n in gaps.split(",")], [int(n) for n in slots.split(",")]
    cut = list(cut_gaps(texts, tokens, gaps=numbers, slots=sizes, count=cases, seed=seed))
    _measure(cut, tokens, records, json_output, seed=seed, noise=noise, foresight=foresight, strict=True)


def unclean(
    paths: PathsArgument,
    cases: Annotated[int, typer.Option(min=1, help="Use this many cursors per language.")] = 100,
    noise: NoiseOption = 0.15,
    files: Annotated[int, typer.Option(min=1, help="Use at most this many files per language.")] = 30,
    languages: LanguagesOption = "",
    seed: SeedOption = 0,
    records: RecordsOption = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Complete lines in files that are cut off, broken or in newer syntax, and count the fills that are refused."""
    tokens, texts = load_tokenizer(model), sample(paths, files, seed, languages)
    cut = [
        case for name, own in texts.items() for case in cut_cursors(own, require_language(name), tokens, cases, seed)
    ]
    _measure(cut, tokens, records, json_output, seed=seed, noise=noise, foresight=0, strict=False)


def _measure(
    cases: Sequence[Case],
    tokens: Tokenizer,
    path: Path | None,
    json_output: bool,
    *,
    seed: int,
    noise: float,
    foresight: int,
    strict: bool,
) -> None:
    gc.freeze()  # as the service does: collections do not scan what is loaded so far
    with Records(path, Filled, anew=True) as records, output.counting("cases", len(cases)) as advance:
        for index, case in enumerate(cases):
            records.add(filled(case, tokens, [seed, index], noise=noise, foresight=foresight, strict=strict))
            advance()
    show(rows(records.found), json_output)
