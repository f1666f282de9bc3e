"""An engine without a model, for the worker process. The request determines what it does.

A fill takes ``max_tokens`` steps of ``temperature`` seconds each, and it identifies the text that it was made for. For
a text with ``READ``, the fill is the content of the workspace's file ``private``, for one with ``QUOTE`` the paths of
the request's snippets, for one with ``NAME`` what names its document in a cache, and for one with ``COPY`` the text. A
text can also cause a fault: ``CRASH`` ends the process at the first step, ``STUCK`` sleeps, ``SLOW`` sleeps a little at
every step, ``REFUSE`` and ``FAULT`` raise errors, and ``HUGE`` allocates more than there is.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

from lacuna_model.core.errors import RequestError, WeightsError
from lacuna_model.core.params import ChooseSnippets, FillStats, InfillRequest, InfillResult, SlotView, Snapshot, Snippet
from lacuna_server.wire.frames import Setup

Report = Callable[[float, str], None]
# Names a file to which every load and every step of all worker processes appends one character.
COUNT_VARIABLE = "SCRIPTED_ENGINE_COUNT"


def expected(text: str, start: int) -> str:
    """The fill for a region that starts at a byte of a text."""
    return f"<{hashlib.sha256(text.encode()).hexdigest()[:12]} at {start}>"


def count(what: str) -> None:
    if path := os.environ.get(COUNT_VARIABLE):
        with Path(path).open("a") as file:
            file.write(what)


class ScriptedEngine:
    """Fills regions as the request determines."""

    def __init__(self) -> None:
        self._running: set[str] = set()

    def stream(self, request: InfillRequest, *, document: str) -> Generator[Snapshot, None, InfillResult]:
        assert document not in self._running, "two fills of one document at the same time"
        self._running.add(document)
        try:
            return (yield from self._steps(request, document))
        finally:
            self._running.remove(document)

    def _steps(self, request: InfillRequest, document: str) -> Generator[Snapshot, None, InfillResult]:
        text, began = request.text, time.monotonic()
        if "CRASH" in text:
            os._exit(9)
        if "STUCK" in text:
            time.sleep(600)
        if "REFUSE" in text:
            raise RequestError("the regions are refused")
        if "UNREADABLE" in text:
            raise WeightsError("the weights cannot be read")
        if "FAULT" in text:
            raise ValueError(text)
        if "HUGE" in text:
            bytearray(1 << 60)
        if isinstance(request.task, ChooseSnippets):
            budget = request.task.tokens
            snippet = Snippet("other.py", f"from {request.workspace}\n", "a test", 0.5, tokens=budget)
            return InfillResult("ok", ("",), FillStats(), snippets=(snippet,))
        fills = tuple(expected(text, region.start) for region in request.regions)
        if "READ" in text:
            workspace = request.workspace
            fills = (Path(workspace, "private").read_text() if workspace else "no workspace",) * len(fills)
        if "NAME" in text:
            fills = (expected(document, 0),) * len(fills)
        if "COPY" in text:
            fills = (text,) * len(fills)
        if "QUOTE" in text:
            fills = (" ".join(snippet.path for snippet in request.snippets),) * len(fills)
        step = 0
        for step in range(1, max(region.max_tokens for region in request.regions) + 1):
            time.sleep(0.02 if "SLOW" in text else request.options.temperature)
            if request.options.deadline_ms and (time.monotonic() - began) * 1e3 > request.options.deadline_ms:
                return InfillResult("deadline", ("",) * len(fills), FillStats(steps=step))
            count("s")
            slots = tuple((SlotView(fill, "draft", 0.5),) for fill in fills)
            yield Snapshot(step, fills, slots)
        return InfillResult("ok", fills, FillStats(nfe=step, steps=step, tokens=step))


def load(setup: Setup, report: Report) -> ScriptedEngine:
    count("L")
    print("a library that prints to stdout", flush=True)
    report(0.5, "half")
    return ScriptedEngine()


def load_slowly(setup: Setup, report: Report) -> ScriptedEngine:
    report(0.25, "a quarter")
    time.sleep(1.0)
    return load(setup, report)


def load_huge(setup: Setup, report: Report) -> ScriptedEngine:
    count("L")
    bytearray(1 << 60)
    raise AssertionError("there is no such memory")


def load_nothing(setup: Setup, report: Report) -> ScriptedEngine:
    Path("/nowhere/model.safetensors").read_bytes()
    return ScriptedEngine()


def load_damaged(setup: Setup, report: Report) -> ScriptedEngine:
    raise WeightsError("the weights are damaged")


def load_when_mended(setup: Setup, report: Report) -> ScriptedEngine:
    if not os.path.exists(os.environ["SCRIPTED_MENDED"]):
        raise WeightsError("the weights are damaged")
    return load(setup, report)


def load_crashing(setup: Setup, report: Report) -> ScriptedEngine:
    count("L")
    os._exit(11)


def load_hanging(setup: Setup, report: Report) -> ScriptedEngine:
    count("L")
    report(0.5, "half")
    time.sleep(600)
    raise AssertionError("the service did not end this process")


def load_and_die(setup: Setup, report: Report) -> ScriptedEngine:
    """An engine whose process ends as soon as it has reported that it is ready."""
    count("L")
    sys.modules["lacuna_server.worker.main"].Worker.run = lambda self: os._exit(9)
    return ScriptedEngine()


def load_with_a_program(setup: Setup, report: Report) -> ScriptedEngine:
    """Runs a program that reads its standard input, as a compiler may."""
    read = subprocess.run(["cat"], stdout=subprocess.PIPE, timeout=20).stdout
    assert read == b"", "the program has read the frames"
    return load(setup, report)
