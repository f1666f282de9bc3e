"""The command ``syntax``: what the constraint admits of true fills and does to noise, with a simulated model."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer
from tests.benchmarks.constraint.synthetic import Case, NoiseOption, SyntheticModel, cut_case, source_files
from tests.benchmarks.figures import Row, percentile, show

from lacuna_model.backends.readers import load_tokenizer
from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.core.context import Gap
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Snapshot, with_fills
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.languages.registry import require_language
from lacuna_model.syntax import Language, SyntaxConstraint, language_for, parses
from lacuna_model.tokens.tokenizer import Tokenizer
from training.options import ModelOption


class Filled(msgspec.Struct, frozen=True):
    """The result for a case of so many ``gaps`` of so many ``slots``.

    ``clean``: the file is delivered and parses. ``exact`` has for each delivered fill whether it is the true one,
    without white space at the ends. ``waits`` are the milliseconds that each step waited for the constraint.
    """

    language: str
    gaps: int
    slots: int
    refused: bool
    clean: bool
    exact: tuple[bool, ...]
    waits: tuple[float, ...]


def measure(
    files: Mapping[str, Sequence[bytes]],
    tokens: Tokenizer,
    *,
    gaps: Sequence[int] = (1, 2, 3, 8),
    slots: Sequence[int] = (4, 16, 48),
    cases: int = 25,
    noise: float = 0.15,
    foresight: int = 0,
    seed: int = 0,
) -> Iterator[Filled]:
    """The results of so many ``cases`` for each language, number of gaps and size of gap.

    ``files`` maps the name of a language to its files' texts. ``noise`` is the share of places whose best token is
    wrong; 1 means that the model knows nothing. ``foresight`` is how many tokens the model writes at once (0: as many
    as the fill may have).
    """
    for (name, texts), num_gaps, num_slots in product(files.items(), gaps, slots):
        language = require_language(name)
        found = _cases(texts, language, tokens, seed, gaps=num_gaps, slots=num_slots, count=cases)
        for index, case in enumerate(found):
            rng = np.random.default_rng([seed, index])
            model = SyntheticModel(case.truths, tokens, rng, noise=noise, foresight=foresight)
            yield filled(case, tokens, model, num_slots)


def _cases(
    texts: Sequence[bytes], language: Language, tokens: Tokenizer, seed: int, *, gaps: int, slots: int, count: int
) -> Iterator[Case]:
    rng = np.random.default_rng([seed, gaps, slots])
    sound = [text for text in texts if parses(text, language)]
    for index in range(count if sound else 0):
        case = cut_case(sound[index % len(sound)], language, tokens, rng, gaps=gaps, slots=slots, shape="lines")
        if case is not None:
            yield case


def filled(case: Case, tokens: Tokenizer, model: SyntheticModel, slots: int) -> Filled:
    """Fills a case with the constraint."""
    constraint = SyntaxConstraint(case.text, case.regions, case.language, tokens, strict=True)
    fills = [Fill(Gap(index), region.max_tokens) for index, region in enumerate(case.regions)]
    loop = denoise(model, fills, [constraint], tokens, deadline=None)
    waits, last = list[float](), Snapshot(0, (), ())
    while True:
        try:
            snapshot = next(loop)
        except StopIteration as ended:
            delivered = ended.value.verdict.fills
            break
        if snapshot.step > last.step:  # otherwise it vetoed every proposal and gets others in the same step
            waits.append(snapshot.constraint_ms - last.constraint_ms)
            last = snapshot
    pairs = [
        (fill.strip(), tokens.decode_bytes(truth).decode().strip())
        for fill, truth in zip(delivered or (), case.truths, strict=delivered is not None)
    ]
    return Filled(
        case.language.name,
        len(case.regions),
        slots,
        delivered is None,
        delivered is not None and parses(with_fills(case.text, case.regions, delivered), case.language),
        tuple(fill == truth for fill, truth in pairs),
        tuple(waits),
    )


def rows(found: Sequence[Filled], by_language: bool) -> list[Row]:
    """The figures of each number and size of gaps, over all languages or for each."""
    result: list[Row] = []
    keys = [(one.language if by_language else "all", one.gaps, one.slots) for one in found]
    for key in dict.fromkeys(keys):
        own = [one for one, other in zip(found, keys, strict=True) if other == key]
        language, gaps, slots = key
        waits = [wait for one in own for wait in one.waits]
        row: Row = {
            "language": language,
            "gaps": gaps,
            "slots": slots,
            "cases": len(own),
            "refused": sum(one.refused for one in own),
            "delivered, parse": sum(one.clean for one in own),
            "gaps as they were": sum(map(sum, (one.exact for one in own))),
            "of": gaps * len(own),
            **{f"step waits ms p{share}": percentile(waits, share) for share in (50, 95, 99)},
        }
        result.append(row)
    return result


def syntax(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Source files; the file name decides the language.")
    ],
    gaps: Annotated[str, typer.Option(help="Run cases with these numbers of gaps.")] = "1,2,3,8",
    slots: Annotated[str, typer.Option(help="Run cases with these numbers of slots per gap.")] = "4,16,48",
    cases: Annotated[int, typer.Option(min=1, help="Run this many cases for each row of the table.")] = 25,
    noise: NoiseOption = 0.15,
    foresight: Annotated[
        int, typer.Option(min=0, help="Let the model write only this many tokens at once; 0: all.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Draw the cases with this random seed.")] = 0,
    by_language: Annotated[bool, typer.Option("--by-language", help="Print one row per language.")] = False,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps of files with a simulated model and the constraint: what is refused, parses and is as it was."""
    if unknown := [file for file in files if language_for(str(file)) is None]:
        raise RequestError(f"{unknown[0]}: no language is known for this name")
    tokens = load_tokenizer(model)
    gc.freeze()  # as the service does: collections do not scan what is loaded so far
    texts = source_files(files)
    gap_counts, slot_counts = [int(n) for n in gaps.split(",")], [int(n) for n in slots.split(",")]
    found = []
    with output.counting("cases", len(texts) * len(gap_counts) * len(slot_counts) * cases) as advance:
        for one in measure(
            texts, tokens, gaps=gap_counts, slots=slot_counts, cases=cases, noise=noise, foresight=foresight, seed=seed
        ):
            found.append(one)
            advance()
    show(rows(found, by_language), json_output)


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("syntax")(syntax)
