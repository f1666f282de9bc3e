"""The command ``drafts``: what drafting is worth: tokens a pass, and the time of a fill, by where drafts come from.

Each request is filled without drafts, with those of the project, with those of masks (of a smaller model, or of the
model itself), and with both. Greedy fills do not depend on drafts; a fill that differs is counted.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
import typer
from tests.benchmarks.figures import Row, grouped, percentile, ratio, show, times
from tests.benchmarks.held_out.cases import held_out_files
from tests.benchmarks.tasks.dataset import load_problems, spread

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest, ReadContext
from lacuna_model.engine import Engine
from lacuna_model.fim.costs import AcceptanceRates, DraftedToken, PassCosts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.measuring import first_costs
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.readers import load
from training.options import CORPUS, CorpusOption, ModelOption, ThreadsOption

Arm = Literal["none", "project", "masks", "both"]
ARMS: tuple[Arm, ...] = get_args(Arm)
_BY_MODELS = {"masks", "both"}
# Slots of a draft whose acceptance is shown.
SLOTS = 8
PassMs = Mapping[int, Sequence[float]]


class Drafted(msgspec.Struct, frozen=True):
    """A fill of one arm: passes, committed tokens, and milliseconds without the encoding of its context.

    ``asked`` and ``right`` count, by slot of a draft, the tokens that were verified and those that held. The smaller
    model made so many ``drafting`` passes. ``differs`` says whether the first arm's fills are others.
    """

    language: str
    arm: Arm
    fills: tuple[str, ...]
    passes: int
    tokens: int
    asked: Counter[int]
    right: Counter[int]
    ms: float
    drafting: int
    differs: bool = False


class _Timed(PassCosts):
    """Keeps the milliseconds of every pass, by its rows."""

    def __init__(self, times: dict[int, list[float]]) -> None:
        super().__init__()
        self._times = times
        self.count = 0

    def saw_pass(self, rows: int, ms: float, sharing: int = 1, *, masks: int = 0) -> None:
        super().saw_pass(rows, ms, sharing, masks=masks)
        self._times[rows].append(ms)
        self.count += 1


class _Counted(AcceptanceRates):
    """Counts the tokens of drafts that were verified, and those that were right, by their slot."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.right = Counter[int](), Counter[int]()

    def saw(self, guess: DraftedToken, held: bool) -> None:
        super().saw(guess, held)
        self.asked[guess.slot] += 1
        self.right[guess.slot] += held


def measure(
    model: LoadedFim,
    requests: Sequence[InfillRequest],
    *,
    arms: Sequence[Arm] = ARMS,
    syntax: bool = False,
    together: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> tuple[list[Drafted], PassMs, PassMs]:
    """Fills every request in each of the ``arms`` that the model has; calls ``advance`` after each fill.

    Besides the fills, the milliseconds of passes by their rows, of the model and of the smaller one. With ``together``
    the arms share the contexts that they have read, and what they learn.
    """
    arms = [arm for arm in arms if arm in arms_of(model)]
    own, drafting = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
    shared = _engine(model, own, drafting) if together else None
    engines = {arm: shared or _engine(model, own, drafting) for arm in arms}
    found = []
    for number, request in enumerate(requests):
        at = number % len(arms)  # no arm always comes first
        filled = {}
        for arm in [*arms[at:], *arms[:at]]:
            options = DecodeOptions(prior=arm in ("project", "both"), drafter=arm in _BY_MODELS, syntax=syntax)
            filled[arm] = _fill(engines[arm], arm, request, options)
            advance()
        first = filled[arms[0]].fills
        found += [msgspec.structs.replace(filled[arm], differs=filled[arm].fills != first) for arm in arms]
    return found, own, drafting


def arms_of(model: LoadedFim) -> list[Arm]:
    """The arms that a model has."""
    drafts = model.smaller is not None or model.transformer.masks is not None
    return [arm for arm in ARMS if drafts or arm not in _BY_MODELS]


def _engine(model: LoadedFim, times: dict[int, list[float]], drafting: dict[int, list[float]]) -> Engine:
    smaller = model.smaller and replace(model.smaller, costs=_Timed(drafting))
    measured = replace(model, costs=_Timed(times), rates=_Counted(), smaller=smaller)
    for one in (measured, smaller):
        if one is not None:
            first_costs(one)
    return Engine(measured)


def _fill(engine: Engine, arm: Arm, request: InfillRequest, options: DecodeOptions) -> Drafted:
    """One fill, its context encoded before."""
    engine.fill(msgspec.structs.replace(request, options=options, task=ReadContext()))
    rates = _counted(engine)
    asked, right = rates.asked.copy(), rates.right.copy()
    before, began = _drafting(engine), time.perf_counter()
    result = engine.fill(msgspec.structs.replace(request, options=options))
    ms = (time.perf_counter() - began) * 1e3
    tokens = result.stats.tokens + len(request.regions)  # the end of a gap is one, too
    held = rates.asked - asked, rates.right - right
    drafting = _drafting(engine) - before
    return Drafted(request.language, arm, result.fills, result.stats.nfe, tokens, *held, ms, drafting)


def _counted(engine: Engine) -> "_Counted":
    """The rates of an engine's model."""
    assert isinstance(engine.model, LoadedFim)
    assert isinstance(engine.model.rates, _Counted)
    return engine.model.rates


def _drafting(engine: Engine) -> int:
    """How many passes the smaller model has made."""
    smaller = engine.model.smaller if isinstance(engine.model, LoadedFim) else None
    return smaller.costs.count if smaller is not None and isinstance(smaller.costs, _Timed) else 0


def rows(found: Sequence[Drafted]) -> list[Row]:
    """The figures of each arm, by language and over all; *accepted* are per cent of right tokens by slot of a draft."""
    result: list[Row] = []
    for language, own in grouped(found, lambda one: one.language).items():
        base = sum(one.ms for one in own if one.arm == found[0].arm)
        for arm in dict.fromkeys(one.arm for one in own):
            result.append(
                {"language": language, "drafts": arm, **_figures([one for one in own if one.arm == arm], base)}
            )
    return result


def _figures(own: Sequence[Drafted], base: float) -> Row:
    asked, right = Counter[int](), Counter[int]()
    for one in own:
        asked.update(one.asked)
        right.update(one.right)
    passes, tokens, ms = sum(one.passes for one in own), sum(one.tokens for one in own), sum(one.ms for one in own)
    return {
        "fills": len(own),
        "differing": sum(one.differs for one in own),
        "passes": passes,
        "tokens": tokens,
        "tokens a pass": ratio(tokens, passes),
        "accepted": " ".join(f"{100 * right[slot] / asked[slot]:.0f}" for slot in sorted(asked)[:SLOTS]),
        "drafting passes a pass": ratio(sum(one.drafting for one in own), passes),
        "tokens a second": 1e3 * ratio(tokens, ms),
        **times([one.ms for one in own]),
        "times as fast": ratio(base, ms),
    }


def pass_ms(ms: PassMs) -> str:
    """The median milliseconds of a pass by its rows."""
    return ", ".join(f"{rows}: {percentile(own, 50):.0f}" for rows, own in sorted(ms.items()))


def drafts(
    corpus: CorpusOption = CORPUS,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Fill the problems of this file of HumanEval-Infilling instead.", metavar="FILE"),
    ] = None,
    languages: Annotated[str, typer.Option("--languages", help="Use these languages, as in go,rust.")] = "",
    cases: Annotated[
        int,
        typer.Option(min=1, help="Use this many gaps in the held-out files of each language, or problems of --data."),
    ] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Draw the gaps with this random seed.")] = 0,
    syntax: Annotated[bool, typer.Option("--syntax", help="Check the syntax, as fills for users do.")] = False,
    arms: Annotated[
        str,
        typer.Option("--arms", help="Compare these only: none,project,masks,both."),
    ] = "none,project,masks,both",
    together: Annotated[
        bool, typer.Option("--together", help="Read each context once for all: faster, where only counts matter.")
    ] = False,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps without drafts, with those of the project, of masks, and both: tokens per pass and speed.

    Fills that differ are counted.
    """
    compared = [arm for arm in ARMS if arm in arms.split(",")]
    if unknown := set(arms.split(",")) - set(compared):
        raise RequestError(f"--arms has no {min(unknown)!r}; there are {', '.join(ARMS)}")
    if data is not None:
        drawn = [problem.request for problem in spread(load_problems(data), cases)]
    else:
        files = held_out_files(corpus, [name for name in languages.split(",") if name])
        drawn = [case.request for file in files.values() for case in file.cases(cases, seed)]
    loaded = load(model, threads=threads)
    if not isinstance(loaded, LoadedFim):
        raise RequestError("this benchmark does not apply to an open checkpoint, which verifies no drafts")
    compared = [arm for arm in compared if arm in arms_of(loaded)]
    with output.counting("fills", len(drawn) * len(compared)) as advance:
        found, own, smaller = measure(loaded, drawn, arms=compared, syntax=syntax, together=together, advance=advance)
    output.say(f"ms of a pass by rows: {pass_ms(own)}; of the smaller model: {pass_ms(smaller)}")
    show(rows(found), json_output)
