"""The command ``speed``: compares the speed with llama.cpp's, with the same weights, text and machine, in turns."""

import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer
from tests.benchmarks.figures import Row, percentile, show
from tests.benchmarks.tasks import llama
from tests.benchmarks.tasks.llama import Continues, LlamaCpp

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, ReadContext, Region, Task
from lacuna_model.engine import Engine
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import ModelOption

Encode = Callable[[str], list[int]]
# Large modules of plain code that every CPython ships.
MODULES = ("argparse.py", "tarfile.py", "inspect.py", "typing.py", "subprocess.py", "shutil.py", "difflib.py")
LENGTHS = (16, 32, 64)
CONTEXT_TOKENS = 1100
OURS = "lacuna"
State = Literal["warm", "cold"]


@dataclass(frozen=True, slots=True)
class Context:
    """A gap in real code: the text before and after it, and the line that was removed, which the user types."""

    before: str
    after: str
    line: str


def contexts(encode: Encode, num_tokens: int) -> Iterator[Context]:
    """Yields disjoint pieces of about ``num_tokens`` tokens until the modules end; a third of each is suffix."""
    folder = Path(sysconfig.get_path("stdlib"))
    for module in MODULES:
        lines = (folder / module).read_text(encoding="utf-8").splitlines(keepends=True)
        # A token often holds a line's end and the next line's indentation, so lines are measured with both.
        sizes = [len(encode("\n" + line.rstrip("\n"))) for line in lines]
        start = 0
        while (end := _reach(sizes, start, num_tokens)) < len(lines):
            gap = _reach(sizes, start, round(num_tokens * 2 / 3))
            # The gap replaces a line of 40 characters or more if there is one, so that each run can type into it.
            gap = max(range(gap, end), key=lambda i: (len(lines[i].strip()) >= 40, -i))
            yield Context("".join(lines[start:gap]), "".join(lines[gap + 1 : end]), lines[gap].rstrip("\n"))
            start = end


def _reach(sizes: list[int], start: int, num_tokens: int) -> int:
    """Returns the line index at which ``num_tokens`` tokens from ``start`` on are complete."""
    total, index = 0, start
    while index < len(sizes) and total < num_tokens:
        total += sizes[index]
        index += 1
    return index


@dataclass(frozen=True, slots=True)
class Completer:
    """An engine: ``complete`` generates so many tokens after what is typed into a gap, and returns their number.

    ``rest`` does what it does while the cursor rests there.
    """

    name: str
    complete: Callable[[Context, str, int], int]
    rest: Callable[[Context], object] = lambda _: None


def of_engine(engine: Engine) -> Completer:
    """Lacuna: the gap follows the prefix and the typed text, and precedes the suffix; at rest it reads ahead.

    The syntax constraint is off, because a fill with a forced number of tokens may end anywhere.
    """

    def request(context: Context, typed: str, num_tokens: int, task: Task) -> InfillRequest:
        before = context.before + typed
        gap = len(before.encode())
        region = Region(gap, gap, max_tokens=num_tokens, min_tokens=num_tokens)
        options = DecodeOptions(syntax=False, deadline_ms=0)
        return InfillRequest(f"{before}\n{context.after}", (region,), task, "bench.py", "python", options=options)

    return Completer(
        OURS,
        lambda context, typed, number: engine.fill(request(context, typed, number, FillGaps())).stats.tokens,
        lambda context: engine.fill(request(context, "", 1, ReadContext())),
    )


def of_llama(peer: Continues, encode: Encode) -> Completer:
    """llama.cpp, generating left to right: its prompt is the whole text, prefix and suffix, without a gap.

    That favours llama.cpp: in a fill-in-the-middle prompt the suffix comes last, and the prompt cache, which keeps a
    common beginning, would not cover it after a keystroke. No token ends it.
    """

    def complete(context: Context, typed: str, num_tokens: int) -> int:
        return len(peer.generate(encode(context.before + context.after + typed), num_tokens))

    return Completer("llama.cpp", complete)


class Timed(NamedTuple):
    """The milliseconds of each engine's runs, for ``tokens`` generated tokens."""

    state: State
    tokens: int
    ms: dict[str, list[float]]


def milliseconds(engine: Completer, context: Context, typed: str, num_tokens: int) -> float:
    """The milliseconds of one completion, scaled to ``num_tokens`` tokens.

    Only delivered tokens count: the healed token does not, and tokens may join at the seam of two blocks, so one or two
    tokens may be missing. Raises LacunaError if the number is off by more than a quarter.
    """
    started = time.perf_counter()
    generated = engine.complete(context, typed, num_tokens)
    elapsed = (time.perf_counter() - started) * 1000
    if abs(generated - num_tokens) > num_tokens // 4:
        raise LacunaError(f"{engine.name} generated {generated} tokens where {num_tokens} were asked for")
    return elapsed * num_tokens / generated


def measure(
    engines: Sequence[Completer],
    encode: Encode,
    *,
    lengths: Sequence[int] = LENGTHS,
    warm: int,
    cold: int,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[Timed]:
    """Times the engines in turns for every length.

    Warm: in a cached context to which each run adds a typed character; cold: in contexts that no engine has read.
    """
    fresh = contexts(encode, CONTEXT_TOKENS)
    for engine in engines:  # the first call includes lazy initialisation
        engine.complete(next(fresh), "", lengths[0])
    for num_tokens in lengths:
        known = next(fresh)
        for engine in engines:
            engine.complete(known, "", num_tokens)
            engine.rest(known)
        warm_runs = ((known, known.line[:run]) for run in range(1, warm + 1))
        cold_runs = ((next(fresh), "") for _ in range(cold))
        plans: tuple[tuple[State, Iterator[tuple[Context, str]]], ...] = (("warm", warm_runs), ("cold", cold_runs))
        for state, runs in plans:
            ms: dict[str, list[float]] = {engine.name: [] for engine in engines}
            for context, typed in runs:
                for engine in engines:
                    ms[engine.name].append(milliseconds(engine, context, typed, num_tokens))
                advance()
            yield Timed(state, num_tokens, ms)


def rows(found: Sequence[Timed]) -> list[Row]:
    """A row for each state and length; *times as fast* are the ratios of the medians."""
    result: list[Row] = []
    for one in found:
        row: dict[str, str | float] = {"context": one.state, "tokens": one.tokens, "runs": len(one.ms[OURS])}
        for name, ms in one.ms.items():
            row |= {f"{name} p50": percentile(ms, 50), f"{name} p95": percentile(ms, 95)}
        peers = [percentile(ms, 50) for name, ms in one.ms.items() if name != OURS]
        result.append(row | {"times as fast": min(peers) / percentile(one.ms[OURS], 50)})
    return result


def speed(
    warm: Annotated[int, typer.Option(min=1, help="Time this many runs with a cached context.")] = 9,
    cold: Annotated[int, typer.Option(min=1, help="Time this many runs with a new context.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Use this many CPU threads in each engine.")] = 2,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Measure speed: time fills of 16, 32 and 64 tokens, with llama.cpp on the same weights for comparison.

    llama.cpp is llama-cpp-python, compiled on this machine.
    It uses its prompt cache, reads the same text as a prompt, and generates left to right.
    """
    llama.require()
    engine = Engine.load(model, threads=threads, device="cpu")  # llama.cpp runs on the CPU too
    encode = engine.model.tokenizer.encode
    peer = LlamaCpp(models.weights(model), threads=threads)
    output.say(f"llama.cpp is compiled for {peer.compiled_for}")
    engines = [of_engine(engine), of_llama(peer, encode)]
    with output.counting("runs", len(LENGTHS) * (warm + cold)) as advance:
        found = list(measure(engines, encode, warm=warm, cold=cold, advance=advance))
    show(rows(found), json_output, f"ms, about {CONTEXT_TOKENS} tokens of context, {threads} threads")
