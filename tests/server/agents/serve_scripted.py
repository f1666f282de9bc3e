"""Runs ``lacuna mcp`` with an engine that fills every region with the same line, and says what it was given."""

import sys
from contextlib import contextmanager

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult
from lacuna_server.__main__ import main
from lacuna_server.cli import engines


class Scripted:
    def __init__(self, model: object) -> None:
        self.model = model

    def fill(self, request: InfillRequest) -> InfillResult:
        said = f"model {self.model}, workspace {request.workspace!r}"
        return InfillResult("ok", ("scripted = 1\n",) * len(request.regions), FillStats(), said)


@contextmanager
def opened(model: object, service: object):  # type: ignore[no-untyped-def]
    yield Scripted(model), "scripted"


engines.opened = opened  # type: ignore[assignment]
main(["mcp", *sys.argv[1:]])
