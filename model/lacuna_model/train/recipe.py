"""A recipe: everything a run is trained with, as one JSON file."""

from pathlib import Path

import msgspec

from lacuna_model.errors import RequestError
from lacuna_model.train.loop import TrainOptions
from lacuna_model.train.objective import LossOptions
from lacuna_model.train.samples import SampleOptions


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of training; the defaults are for two CPU cores."""

    train: TrainOptions = TrainOptions()
    samples: SampleOptions = SampleOptions()
    loss: LossOptions = LossOptions()


def read_recipe(path: Path) -> Recipe:
    """A recipe from a file; raises RequestError, which names what is wrong in it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Recipe)
    except (OSError, msgspec.MsgspecError) as error:
        raise RequestError(f"{path}: not a recipe: {error}") from error
