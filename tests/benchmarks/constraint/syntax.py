"""The command ``syntax``: measures validity and cost of the syntax constraint, with synthetic or real models."""

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, TypeVar

import msgspec
import numpy as np
from rapidfuzz import fuzz
from rich.table import Table
from tests.benchmarks.constraint.syntax_oracles import oracle_for
from tests.benchmarks.constraint.synthetic import Case, Shape, SyntheticModel, cut_case

from lacuna_model.core.constraint import Constraint, Unconstrained, Verdict
from lacuna_model.core.context import Gap
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, Snapshot
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.languages.registry import language_for
from lacuna_model.syntax import Language, SyntaxConstraint, parses
from lacuna_model.tokens.tokenizer import Tokenizer

Mode = Literal["off", "retry", "constraint", "engine-off", "engine"]
MODES: tuple[Mode, ...] = ("off", "retry", "constraint")
ENGINE_MODES: tuple[Mode, ...] = ("engine-off", "engine")
Filler = Callable[[InfillRequest], Generator[Snapshot, None, InfillResult]]
Result = TypeVar("Result")
RETRIES = 3
ALL = "all"
STEP_MS = 40.0  # time of a step of the embedded model on two cores


class Cell(msgspec.Struct, frozen=True):
    """One row of the table.

    Shares are of all cases: ``clean`` of files that tree-sitter parses without errors; ``accepted`` of results that are
    clean or refused with ``no_valid_fill`` (``refused``); ``oracle`` of delivered files that the language's own
    compiler accepts (NaN if there is none). ``similarity`` (normalised Indel, 0..1), ``exact`` and ``empty`` compare
    the delivered fills with the true ones, without white space at the ends; no true fill is empty. Times are the
    milliseconds that a step waits for the constraint. ``share`` is their p95 over the time of a step: 40 ms with
    synthetic models, which leave no time to search meanwhile, and the mean of its own steps with an engine.
    ``deferred`` is the share of proposals that the constraint vetoed.
    """

    mode: Mode
    language: str
    gaps: int
    slots: int
    cases: int
    clean: float
    accepted: float
    refused: float
    oracle: float
    similarity: float
    exact: float
    empty: float
    steps: float
    ms_p50: float
    ms_p95: float
    ms_p99: float
    share: float
    deferred: float


@dataclass(slots=True)
class _Tally:
    cases: int = 0
    clean: int = 0
    refused: int = 0
    oracle: list[bool] = field(default_factory=list)
    similarity: list[float] = field(default_factory=list)
    exact: list[bool] = field(default_factory=list)
    empty: list[bool] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)
    engine_ms: float = 0.0  # without the encoding of contexts
    deferred: int = 0
    proposed: int = 0

    def add(self, other: "_Tally") -> None:
        """Adds the counts of another tally."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def cell(self, mode: Mode, language: str, gaps: int, slots: int) -> Cell:
        p50, p95, p99 = np.percentile(self.step_ms or [0.0], [50, 95, 99])
        return Cell(
            mode=mode,
            language=language,
            gaps=gaps,
            slots=slots,
            cases=self.cases,
            clean=self.clean / self.cases,
            accepted=(self.clean + self.refused) / self.cases,
            refused=self.refused / self.cases,
            oracle=_mean(self.oracle),
            similarity=_mean(self.similarity),
            exact=_mean(self.exact),
            empty=_mean(self.empty),
            steps=float(np.mean(self.steps)),
            ms_p50=float(p50),
            ms_p95=float(p95),
            ms_p99=float(p99),
            share=float(p95) / (self.engine_ms / max(sum(self.steps), 1) if self.engine_ms else STEP_MS),
            deferred=self.deferred / max(self.proposed, 1),
        )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def run(
    files: Mapping[str, Sequence[bytes]],
    tokens: Tokenizer,
    *,
    fill: Filler | None = None,
    gaps: Sequence[int] = (1, 2, 3, 8),
    slots: Sequence[int] = (4, 16, 48),
    cases: int = 25,
    noise: float = 0.15,
    foresight: int = 0,
    shape: Shape = "lines",
    seed: int = 0,
) -> Iterator[Cell]:
    """Yields a cell per language, number of gaps, size of gap and mode, and finally those of all languages (``ALL``).

    ``files`` maps the name of a language to its files' texts. ``noise`` is the share of places whose best token
    is wrong; 1 means that the model knows nothing. ``foresight`` is how many tokens the model writes at once (0: as
    many as the fill may have). With ``fill``, that engine fills the gaps instead, without and with its constraint.
    """
    total: dict[tuple[Mode, int, int], _Tally] = defaultdict(_Tally)
    for (name, texts), num_gaps, num_slots in itertools.product(files.items(), gaps, slots):
        language = language_for(name=name)
        if language is None:
            continue
        found = list(_cases(texts, language, tokens, seed, gaps=num_gaps, slots=num_slots, count=cases, shape=shape))
        if fill is not None and found:  # a running service has loaded the grammar's tables, so load them first
            _measure_engine(found[0], tokens, fill, "engine", _Tally())
        for mode in ENGINE_MODES if fill is not None else MODES:
            tally = _Tally()
            for index, case in enumerate(found):
                if fill is not None:
                    _measure_engine(case, tokens, fill, mode, tally)
                else:
                    rng = np.random.default_rng([seed, index])
                    model = SyntheticModel(case.truths, tokens, rng, noise=noise, foresight=foresight)
                    _measure(case, tokens, mode, model, tally)
            if tally.cases:
                total[mode, num_gaps, num_slots].add(tally)
                yield tally.cell(mode, name, num_gaps, num_slots)
    for (mode, num_gaps, num_slots), tally in total.items():
        yield tally.cell(mode, ALL, num_gaps, num_slots)


def _cases(
    texts: Sequence[bytes],
    language: Language,
    tokens: Tokenizer,
    seed: int,
    *,
    gaps: int,
    slots: int,
    count: int,
    shape: Shape,
) -> Iterator[Case]:
    rng = np.random.default_rng([seed, gaps, slots])
    sound = [text for text in texts if parses(text, language)]
    for index in range(count if sound else 0):
        case = cut_case(sound[index % len(sound)], language, tokens, rng, gaps=gaps, slots=slots, shape=shape)
        if case is not None:
            yield case


def _measure(case: Case, tokens: Tokenizer, mode: Mode, model: SyntheticModel, tally: _Tally) -> None:
    for _ in range(RETRIES if mode == "retry" else 1):
        constraint: Constraint = (
            SyntaxConstraint(case.text, case.regions, case.language, tokens, strict=True)
            if mode == "constraint"
            else Unconstrained(tokens)
        )
        verdict, steps, step_ms = _fill(case, model, constraint, tokens)
        started = time.perf_counter()
        clean = verdict.fills is not None and parses(assembled(case, verdict.fills), case.language)
        if mode == "retry":
            tally.step_ms.append((time.perf_counter() - started) * 1e3 / max(steps, 1))
        tally.steps.append(steps)
        if clean:
            break
    tally.step_ms += step_ms
    tally.deferred += constraint.stats.vetoes
    tally.proposed += constraint.stats.vetoes + steps
    fills = verdict.fills if clean or mode != "retry" else None
    _judge(case, tokens, fills, assembled(case, fills) if fills is not None else b"", tally)


def _measure_engine(case: Case, tokens: Tokenizer, fill: Filler, mode: Mode, tally: _Tally) -> None:
    options = DecodeOptions(syntax=mode == "engine")
    request = InfillRequest(case.text.decode(), case.regions, language=case.language.name, options=options)
    result, step_ms = _waits(fill(request))
    stats = result.stats
    tally.steps.append(stats.steps)
    tally.step_ms += step_ms
    tally.engine_ms += stats.ms - stats.encode_ms
    tally.deferred += stats.vetoes
    tally.proposed += stats.vetoes + stats.tokens
    _judge(case, tokens, result.fills if result.status == "ok" else None, assembled(case, result.fills), tally)


def _judge(case: Case, tokens: Tokenizer, fills: Sequence[str] | None, filled: bytes, tally: _Tally) -> None:
    """Counts the result of a case: its fills (None for a refusal) and the file with them."""
    tally.cases += 1
    if fills is None:
        tally.refused += 1
        return
    tally.clean += parses(filled, case.language)
    truths = [tokens.decode_bytes(truth).decode() for truth in case.truths]
    oracle = oracle_for(case.language.name)
    if oracle is not None and oracle(assembled(case, truths)) and (said := oracle(filled)) is not None:
        tally.oracle.append(said)
    for fill, truth in zip(fills, truths, strict=True):
        tally.similarity.append(fuzz.ratio(fill.strip(), truth.strip()) / 100)
        tally.exact.append(fill.strip() == truth.strip())
        tally.empty.append(not fill.strip())


def _fill(
    case: Case, model: SyntheticModel, constraint: Constraint, tokens: Tokenizer
) -> tuple[Verdict, int, list[float]]:
    """Returns the verdict, the number of steps, and the milliseconds that each step waited for the constraint."""
    fills = [Fill(Gap(index), region.max_tokens) for index, region in enumerate(case.regions)]
    loop = denoise(model, fills, [constraint], tokens, deadline=None)
    ending, step_ms = _waits(loop)
    return ending.verdict, ending.counts.steps, step_ms


def _waits(loop: Generator[Snapshot, None, Result]) -> tuple[Result, list[float]]:
    """Returns the result of a loop, and the milliseconds that each of its steps waited for the constraint."""
    step_ms: list[float] = []
    step, before = 0, 0.0
    while True:
        try:
            snapshot = next(loop)
        except StopIteration as end:
            return end.value, step_ms
        if snapshot.step < step:  # another group of regions
            step, before = 0, 0.0
        if snapshot.step > step:  # otherwise the constraint vetoed every proposal and gets others in the same step
            step_ms.append(snapshot.constraint_ms - before)
            step, before = snapshot.step, snapshot.constraint_ms


def assembled(case: Case, fills: Sequence[str]) -> bytes:
    """Returns the file of a case with its gaps filled."""
    parts, offset = [], 0
    for region, fill in zip(case.regions, fills, strict=True):
        parts += [case.text[offset : region.start], fill.encode()]
        offset = region.end
    return b"".join([*parts, case.text[offset:]])


def grown(text: bytes, lines: int) -> bytes:
    """Returns a text repeated until it has at least ``lines`` lines."""
    own = max(text.count(b"\n"), 1)
    return (text.rstrip(b"\n") + b"\n\n\n") * -(-lines // own) if lines > own else text


def table(cells: Sequence[Cell]) -> Table:
    """Returns the cells as a table, one row each."""
    grid = Table(title="Syntax constraint", caption=f"share: p95 over a step of {STEP_MS:.0f} ms")
    for name in Cell.__struct_fields__:
        grid.add_column(name, justify="left" if name in ("mode", "language") else "right")
    percentages = {"clean", "accepted", "refused", "oracle", "exact", "empty", "share", "deferred"}
    for cell in cells:
        values = msgspec.structs.asdict(cell)
        grid.add_row(
            *(
                f"{100 * value:.1f} %"
                if name in percentages
                else f"{value:.2f}"
                if isinstance(value, float)
                else str(value)
                for name, value in values.items()
            )
        )
    return grid
