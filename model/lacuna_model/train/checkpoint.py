"""What a training run needs to go on after it was stopped, written atomically."""

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.errors import WeightsError

if TYPE_CHECKING:
    from lacuna_model.train.loop import Progress

COUNTERS = ("step", "seconds", "slots_seen")


def save_checkpoint(
    path: Path, canvas: TrainableCanvas, optimizer: torch.optim.Optimizer, progress: "Progress"
) -> None:
    """Write learnt weights, optimiser state and counters to ``path`` through a temporary file."""
    state = {
        "canvas": canvas.state_dict(),
        "optimizer": optimizer.state_dict(),
        "progress": {name: getattr(progress, name) for name in COUNTERS},
    }
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load_checkpoint(path: Path, canvas: TrainableCanvas, optimizer: torch.optim.Optimizer) -> "Progress":
    """Restore what :func:`save_checkpoint` wrote; raises WeightsError for a damaged or foreign file."""
    from lacuna_model.train.loop import Progress

    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        canvas.load_state_dict(state["canvas"])
        optimizer.load_state_dict(state["optimizer"])
    except (OSError, RuntimeError, KeyError, ValueError, EOFError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0]
        raise WeightsError(f"{path} is not a checkpoint of this model ({reason})") from error
    return Progress(**state["progress"])
