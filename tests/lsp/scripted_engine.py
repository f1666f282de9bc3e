"""An engine without a model for the service's worker. It follows a script and logs the requests that it gets.

Both files are in the folder that ``LSP_SCRIPT`` names. In ``script.json``, ``fills`` is a list of candidates. Each one
is a text for all regions, or a list with a text for each region. ``steps`` is the number of steps. Each of them tells
how much of the first candidate the steps before it have written; the first of several tells a beginning, too, because
a fill without any text says that its context is still being read. ``pause`` is the length of a step in seconds; a
negative pause ends the process. ``status`` and ``message`` are those of the result, ``unread`` are the tokens of the
context that it answered without, ``constrained`` tells whether the grammar constrained it, ``confidence`` is the
confidence of every line, ``words`` are those of the first one, each with its end and probability, and ``log_prob`` the
log-probability of each line of a rewritten region. ``follows_edits`` makes it a model for next edits. While ``hold`` is
true, the model is still loading. If ``damaged`` is true, loading fails.

``log.jsonl`` has a line for every start, step and end of a fill, and for every read-ahead request.
"""

import json
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec

from lacuna_model.core.errors import WeightsError
from lacuna_model.core.params import FillStats, FollowChanges, InfillRequest, InfillResult, ReadContext, Snapshot
from lacuna_server.wire.frames import Setup

SCRIPT: dict[str, Any] = {
    "fills": ["filled"],
    "steps": 1,
    "pause": 0.0,
    "constrained": True,
    "unread": 0,
    "confidence": 0.9,
    "words": [],
    "log_prob": -99.0,
    "follows_edits": False,
    "status": "ok",
    "hold": False,
}


def folder() -> Path:
    return Path(os.environ["LSP_SCRIPT"])


def script() -> dict[str, Any]:
    return SCRIPT | json.loads((folder() / "script.json").read_text())


def write(event: str, **values: object) -> None:
    with (folder() / "log.jsonl").open("a") as file:
        file.write(json.dumps({"event": event} | values) + "\n")


class ScriptedEngine:
    """Fills regions according to the script."""

    @property
    def follows_edits(self) -> bool:
        return bool(script()["follows_edits"])

    def stream(self, request: InfillRequest, *, document: str) -> Generator[Snapshot, None, InfillResult]:
        if isinstance(request.task, ReadContext):
            write("ahead", document=document, request=msgspec.to_builtins(request))
            return InfillResult("ok", ("",) * len(request.regions), FillStats())
        plan = script()
        write("start", document=document, request=msgspec.to_builtins(request))
        count = len(request.regions)
        sets = [tuple(fill) if isinstance(fill, list) else (fill,) * count for fill in plan["fills"]]
        sets = sets[: request.candidates]
        try:
            for step in range(1, plan["steps"] + 1):
                if plan["pause"] < 0:
                    os._exit(9)
                time.sleep(plan["pause"])
                write("step")
                told = max(step - 1, min(1, plan["steps"] - 1))
                written = tuple(fill[: len(fill) * told // plan["steps"]] for fill in sets[0])
                sure = tuple((plan["confidence"],) * text.count("\n") for text in written)
                words = (tuple(plan["words"]),) * count
                yield Snapshot(step, written, ((),) * count, written=written, confidence=sure, words=words)
        except GeneratorExit:
            write("stopped")
            raise
        write("done")
        stats = FillStats(
            nfe=plan["steps"], steps=plan["steps"], tokens=4, constrained=plan["constrained"], unread=plan["unread"]
        )
        sure = tuple((plan["confidence"],) * len(fill.splitlines()) for fill in sets[0])
        follows = isinstance(request.task, FollowChanges)
        likely = tuple((plan["log_prob"],) * len(fill.splitlines()) * follows for fill in sets[0])
        return InfillResult(
            plan["status"],
            sets[0],
            stats,
            plan.get("message", ""),
            tuple(sets[1:]),
            sure,
            words=(tuple(plan["words"]),) * count,
            likelihoods=likely if any(likely) else (),
            refused=tuple(plan.get("refused", ())),
            warnings=tuple(plan.get("warnings", ())),
        )


def load(setup: Setup, report: Callable[[float, str], None]) -> ScriptedEngine:
    report(0.5, "half of it is there")
    while script()["hold"]:
        time.sleep(0.02)
    if script().get("damaged"):
        raise WeightsError("the weights are damaged")
    return ScriptedEngine()
