"""Runs ``lacuna mcp`` with an engine that fills every region with the same line."""

import sys
from contextlib import contextmanager

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult
from lacuna_server.cli import engines
from lacuna_server.cli.main import main


class Scripted:
    def fill(self, request: InfillRequest) -> InfillResult:
        return InfillResult("ok", ("scripted = 1\n",) * len(request.regions), FillStats())


@contextmanager
def opened(model: object, service: object):  # type: ignore[no-untyped-def]
    yield Scripted(), "scripted"


engines.opened = opened  # type: ignore[assignment]
main(["mcp", *sys.argv[1:]])
