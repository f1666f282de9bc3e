"""Types real files keystroke by keystroke, as a person would who accepts each suggestion that the file contains."""

import asyncio
import random
import re
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from tests.benchmarks.editor.figures import percentile
from tests.benchmarks.editor.typist import Answer, Typist, typist

from lacuna_model.core.errors import RequestError
from lacuna_model.syntax import language_for

LEFT_OUT = (0.3, 0.7)  # the part of each file that is typed; the rest is there from the start
MIN_KEPT = 3  # characters that a suggestion must save to be accepted


class Rhythm(msgspec.Struct, frozen=True):
    """The typing rhythm: average milliseconds between two keys, and the pause before and after a line end."""

    interval_ms: float = 150.0
    pause_ms: float = 1500.0
    max_keys: int = 400


class Replay(msgspec.Struct, frozen=True):
    """The results of typing one file.

    ``shown`` counts suggestions that arrived before the next key, ``kept`` those that the file continues with.
    ``wasted_steps`` counts those of the engine's ``steps`` that served cancelled requests. Times are in milliseconds,
    of answers that the engine computed.
    """

    file: str
    keys: int
    wanted: int
    asked: int
    cached: int
    shown: int
    kept: int
    kept_characters: int
    p50: float
    p95: float
    steps: int
    wasted_steps: int


async def replay(
    files: Sequence[Path], rhythm: Rhythm, *, metrics_url: str, advance: Callable[[str], None]
) -> list[Replay]:
    """Types the middle of every file; reads the engine's step counts from ``metrics_url``."""
    results = []
    for file in files:
        async with typist({}) as (one, _):
            await one.ready()
            person = _Person(one, file)
            before = await asyncio.to_thread(_steps, metrics_url)
            await person.type_all(rhythm)
            after = await asyncio.to_thread(_steps, metrics_url)
            results.append(
                person.result(await one.counts(), {name: after[name] - before.get(name, 0) for name in after})
            )
        advance(file.name)
    return results


class _Person:
    """Types one file and checks the suggestions on the way."""

    def __init__(self, one: Typist, file: Path) -> None:
        language = language_for(file.name)
        if language is None:
            raise RequestError(f"{file}: no language is known for this name")
        text = file.read_text("utf-8")
        begin, end = (text.index("\n", int(share * len(text))) + 1 for share in LEFT_OUT)
        self._one, self._file, self._rest = one, file, text[begin : end - 1]
        self._random = random.Random(0)
        self._keys = self._shown = self._kept = self._kept_characters = 0
        self._seen: set[str] = set()
        self._times: list[float] = []
        one.open(text[:begin], text[end - 1 :], file.suffix, language.name)  # the suffix begins with the line ending

    async def type_all(self, rhythm: Rhythm) -> None:
        """Types to the end or to the maximal number of keys, and accepts the right suggestions."""
        asked: list[asyncio.Task[Answer]] = []
        while self._rest and self._keys < rhythm.max_keys:
            key = self._next_key()
            self._type(key)
            self._keys += 1
            asked.append(asyncio.create_task(self._one.suggest()))
            at_line_end = key.startswith("\n") or self._rest.startswith("\n")
            pause_ms = rhythm.pause_ms if at_line_end else rhythm.interval_ms * self._random.uniform(0.6, 1.4)
            done, _ = await asyncio.wait([asked[-1]], timeout=pause_ms / 1e3)
            if done:
                await self._look_at(asked[-1].result())
        await asyncio.gather(*asked)

    def result(self, counts: dict[str, int], steps: dict[str, float]) -> Replay:
        """Returns the results of the file; ``steps`` counts the engine's steps by outcome."""
        wasted = sum(steps.get(outcome, 0) for outcome in ("cancelled", "superseded"))
        return Replay(
            str(self._file.name),
            self._keys,
            counts["wanted"],
            counts["asked"],
            counts["cached"],
            self._shown,
            self._kept,
            self._kept_characters,
            percentile(self._times, 50),
            percentile(self._times, 95),
            round(sum(steps.values())),
            round(wasted),
        )

    def _next_key(self) -> str:
        """Returns the next character; for a new line also its indentation, which an editor inserts."""
        key = re.match(r"\n[ \t]*|.", self._rest, re.DOTALL)
        assert key is not None
        return key[0]

    def _type(self, text: str) -> None:
        self._one.type(text)
        self._rest = self._rest[len(text) :]

    async def _look_at(self, answer: Answer) -> None:
        if answer.item is None or answer.item.command is None:
            return
        self._shown += 1
        request = msgspec.json.encode(answer.item.command.arguments).decode()
        if request not in self._seen:
            self._seen.add(request)
            self._times.append(answer.ms)
        if len(answer.text) >= MIN_KEPT and self._rest.startswith(answer.text):
            self._kept += 1
            self._kept_characters += len(answer.text)
            self._type(answer.text)
            await self._one.accepted(answer.item)


def _steps(metrics_url: str) -> dict[str, float]:
    """Returns the number of denoising steps that the service has taken, by the outcome of their requests."""
    with urllib.request.urlopen(metrics_url) as page:
        found = re.findall(r'lacuna_fill_steps_total{outcome="(\w+)"} (\S+)', page.read().decode())
    return {outcome: float(count) for outcome, count in found}
