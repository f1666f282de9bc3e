"""How long the large model takes for the first line of a fill on this machine, which decides the default model.

The figure is measured when a model is prepared or first used, kept in the cache folder, and put right by fills.
"""

from pathlib import Path

import msgspec

from lacuna_model.hub.atomic import replacing
from lacuna_model.hub.keeping import keep
from lacuna_model.hub.models import LARGE_WEIGHTS, line_ms, speed_file

# Fills tell of a speed that was measured wrong where they take so many times as long, or as short.
WRONG = 1.6


def learn(ms: float, num_weights: int) -> None:
    """Keep what a model of so many weights took for a line; its passes cost as much more as it has more weights."""
    file = speed_file()
    keep(file, file.name, lambda path: _write(path, ms * LARGE_WEIGHTS / num_weights))


def correct(ms: float, num_weights: int) -> None:
    """Keep what a line took where that says that the known speed is wrong, or where none is known."""
    known, found = line_ms(), ms * LARGE_WEIGHTS / num_weights
    if known is None or not known / WRONG <= found <= known * WRONG:
        learn(ms, num_weights)


def _write(path: Path, ms: float) -> None:
    with replacing(path) as stream:
        stream.write(msgspec.json.encode({"line_ms": round(ms, 1)}))
