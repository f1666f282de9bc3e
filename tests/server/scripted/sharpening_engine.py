"""An engine without a model that commits slots step by step, as a diffusion model does. For tests of the steps."""

import re
import time
from collections.abc import Callable, Generator

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, SlotView, Snapshot
from lacuna_server.wire.frames import Setup

# A service that waits for a core this long would leave out a step.
STEP_S = 0.25
FILL = "self.x + other.x,\n            self.y + other.y"


class SharpeningEngine:
    """Fills every gap with ``FILL`` in six steps. Every second step commits another third of the slots."""

    def stream(self, request: InfillRequest, *, document: str) -> Generator[Snapshot, None, InfillResult]:
        if "REFUSE" in request.text:
            raise RequestError("the regions are refused")
        slots = re.findall(r"\s*[\w.]+|\W", FILL)
        fills = (FILL,) * len(request.regions)
        for step in range(1, 7):
            time.sleep(STEP_S)
            views = tuple(_slot(text, at, step) for at, text in enumerate(slots))
            yield Snapshot(step, fills, (views,) * len(fills), nfe=2 * step, vetoes=step // 2)
        stats = FillStats(nfe=12, steps=6, tokens=len(slots) * len(fills), vetoes=3, ms=6e3 * STEP_S, constrained=True)
        return InfillResult("ok", fills, stats)


def load(setup: Setup, report: Callable[[float, str], None]) -> SharpeningEngine:
    return SharpeningEngine()


def _slot(text: str, at: int, step: int) -> SlotView:
    committed = step >= 2 + 2 * (at % 3) or step == 6
    return SlotView(text, "committed" if committed else "draft", 1.0 if committed else min(0.15 * step, 0.9))
