"""What a training run needs to go on after it was stopped, written atomically."""

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from lacuna_model import atomic
from lacuna_model.adapter import TrainableCanvas
from lacuna_model.errors import WeightsError

if TYPE_CHECKING:
    from lacuna_model.train.loop import Progress

COUNTERS = ("step", "seconds", "slots_seen")


def save_checkpoint(
    path: Path, canvas: TrainableCanvas, optimizer: torch.optim.Optimizer, progress: "Progress"
) -> None:
    """Write learnt weights, optimiser state and counters to ``path`` atomically."""
    state = {
        "canvas": canvas.state_dict(),
        "optimizer": optimizer.state_dict(),
        "progress": {name: getattr(progress, name) for name in COUNTERS},
    }
    with atomic.replacing(path) as file:
        torch.save(state, file)


def load_checkpoint(path: Path, canvas: TrainableCanvas, optimizer: torch.optim.Optimizer) -> "Progress":
    """Restore what :func:`save_checkpoint` wrote; raises WeightsError for a damaged or foreign file."""
    from lacuna_model.train.loop import Progress

    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        canvas.load_state_dict(state["canvas"])
        optimizer.load_state_dict(state["optimizer"])
        return Progress(**state["progress"])
    except (OSError, RuntimeError, LookupError, TypeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WeightsError(f"{path} is not a checkpoint of this model ({reason})") from error
