"""Measures the time from a keystroke to the answer: warm, after a jump with and without a rest, and typed through."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import islice

import msgspec
from tests.benchmarks.editor.figures import percentile
from tests.benchmarks.editor.typist import Answer, Typist, typist
from tests.benchmarks.engine.busy_core import busy_core
from tests.benchmarks.engine.contexts import Context, contexts

CONTEXT_TOKENS = 1000
BYTES_PER_TOKEN = 3.5
STARTS = 5
KEYS = 4  # measured keystrokes per document
REST_S = 20.0  # how long the cursor rests at a place before a key is pressed there
READY = "ready for requests"
# The allowed median and 95th percentile in milliseconds with the 1.5B model on two cores.
BUDGETS: dict[str, tuple[int | None, int | None]] = {
    READY: (500, None),
    "warm": (400, 900),
    "after a jump": (None, 3500),
    "after a jump and a rest": (None, 1000),
    "typed through": (None, 5),
}


class Cell(msgspec.Struct, frozen=True):
    """One row of the report. Times are in milliseconds, of the answers that show something.

    ``empty`` counts the others: an answer that shows nothing is no fast answer.
    """

    what: str
    runs: int
    empty: int
    p50: float
    p95: float
    budget_p50: int | None = None
    budget_p95: int | None = None


Samples = dict[str, list[Answer]]


async def measure(documents: int, *, busy: bool, advance: Callable[[str], None]) -> list[Cell]:
    """Measures with ``documents`` pieces of real code, about 1,000 tokens each.

    With ``busy`` another process uses a core meanwhile. ``advance`` is called with the kind after each document.
    """
    samples: Samples = defaultdict(list)
    with busy_core() if busy else nullcontext():
        for _ in range(STARTS):
            async with typist({}) as (_, ready_ms):
                samples[READY].append(Answer("", ready_ms))
        for kind, options in (("warm", {"debounce": False}), ("warm, with the debounce", {})):
            async with typist(options) as (one, _):
                await one.ready()
                for context in texts(documents):
                    await _type_one(one, context, kind, samples)
                    advance(kind)
    return [_cell(kind, answers) for kind, answers in samples.items()]


def texts(count: int) -> list[Context]:
    """Returns ``count`` pieces of real code, each with a line missing."""
    return list(islice(contexts(lambda text: [0] * round(len(text) / BYTES_PER_TOKEN), CONTEXT_TOKENS), count))


async def _type_one(one: Typist, context: Context, kind: str, samples: Samples) -> None:
    """Types the start of the missing line, then through the suggestion, and finally at another place."""
    lead = len(context.line) - len(context.line.lstrip())
    one.open(context.before + context.line[: lead + 3], "\n" + context.after)
    await one.suggest()  # reads the whole context, so that later requests find it cached
    for character in context.line[lead + 3 : lead + 3 + KEYS]:
        one.type(character)
        counts = await one.counts()
        answer = await one.suggest()
        asked = (await one.counts())["asked"] > counts["asked"]
        if asked:
            samples[kind].append(answer)
        while len(answer.text) > 1 and "\n" not in answer.text[:2] and kind == "warm":
            one.type(answer.text[0])
            answer = await one.suggest()
            samples["typed through"].append(answer)
    if kind == "warm":
        for share, rest_s in ((3, 0.0), (2, REST_S)):
            one.jump(len(context.before) // share + context.before[len(context.before) // share :].index("\n"))
            if rest_s:
                one.focus()
                await asyncio.sleep(rest_s)
            one.type("\n")
            samples["after a jump and a rest" if rest_s else "after a jump"].append(await one.suggest())


def _cell(kind: str, answers: Sequence[Answer]) -> Cell:
    times = [answer.ms for answer in answers if answer.text or kind == READY]
    return Cell(
        kind,
        len(answers),
        len(answers) - len(times),
        percentile(times, 50),
        percentile(times, 95),
        *BUDGETS.get(kind, (None, None)),
    )
