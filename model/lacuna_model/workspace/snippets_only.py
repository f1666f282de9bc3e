"""Answers a request that asks only for the snippets that a fill would read."""

import time
from collections.abc import Generator

from lacuna_model.core.context import TextTokenizer
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Snapshot
from lacuna_model.core.regions import standing
from lacuna_model.workspace.project import Project

# Seconds between two looks at a workspace that is being read.
PAUSE_S = 0.02


def snippets_only(
    request: InfillRequest,
    budget: int,
    project: Project | None,
    tokenizer: TextTokenizer,
    deadline: float | None,
) -> Generator[Snapshot, None, InfillResult]:
    """Wait until the workspace is read; return snippets for the first region, or why there are none.

    They have ``budget`` tokens at most.

    A snapshot follows each look at the workspace, so that other requests may run in between.
    """
    kept = standing(request.text.encode(), request.regions)
    if project is None:
        return InfillResult("ok", kept, FillStats(), "no workspace is read for this document")
    for _ in range(2):  # the first choice asks for the packages that the document imports
        while not project.is_read:
            if deadline is not None and time.monotonic() >= deadline:
                break
            yield Snapshot(0, kept, ((),) * len(kept))
            time.sleep(PAUSE_S)
        chosen = project.choose(request, tokenizer, budget)
    why = "" if chosen else project.why_none(request.path)
    return InfillResult("ok", kept, FillStats(), why, snippets=chosen)
