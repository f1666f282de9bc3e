"""What a training run needs to go on after it was stopped, written atomically."""

import pickle
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from lacuna_model import atomic
from lacuna_model.adapter import TrainableCanvas
from lacuna_model.errors import WeightsError

# What torch and pickle raise for a file that is none of theirs, or cut off.
_DAMAGES = (OSError, RuntimeError, LookupError, TypeError, ValueError, EOFError, pickle.UnpicklingError)


@dataclass(slots=True)
class Progress:
    """How far a run is, over all its resumptions: the step is also the number of the batch to draw next.

    ``planned_steps`` is what the schedule ends at, 0 while it is open.
    """

    step: int = 0
    seconds: float = 0.0
    slots_seen: int = 0
    tokens_seen: int = 0
    planned_steps: int = 0


def save_checkpoint(path: Path, canvas: TrainableCanvas, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Write learnt weights, optimiser state and progress to ``path`` atomically; raises WeightsError."""
    state = {"canvas": canvas.state_dict(), "optimizer": optimizer.state_dict(), "progress": asdict(progress)}
    try:
        with atomic.replacing(path) as file:
            torch.save(state, file)
    except (OSError, RuntimeError) as error:  # torch makes a RuntimeError of a disk that is full
        raise WeightsError(f"{path}: cannot write the checkpoint: {_reason(error)}") from error


def load_checkpoint(path: Path, canvas: TrainableCanvas, optimizer: torch.optim.Optimizer) -> Progress:
    """Restore what :func:`save_checkpoint` wrote; raises WeightsError for a damaged or foreign file."""
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        canvas.load_state_dict(state["canvas"])
        optimizer.load_state_dict(state["optimizer"])
        return Progress(**state["progress"])
    except _DAMAGES as error:
        raise WeightsError(f"{path} is not a checkpoint of this model ({_reason(error)})") from error


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The learnt weights of a checkpoint, named as in an adapter; raises WeightsError."""
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        return {name.replace("/", "."): tensor for name, tensor in state["canvas"].items()}
    except _DAMAGES as error:
        raise WeightsError(f"{path} is not a checkpoint ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
