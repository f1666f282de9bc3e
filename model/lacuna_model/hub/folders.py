"""The user's folders for caches, settings, state and logs, where the system keeps them."""

from pathlib import Path
from typing import Literal

import platformdirs

from lacuna_model.core.errors import RequestError

# What a person did with suggestions, in the state folder.
ANSWERS = "answers.json"

Kind = Literal["cache", "config", "state", "log"]
_FOLDERS = {
    "cache": platformdirs.user_cache_path,
    "config": platformdirs.user_config_path,
    "state": platformdirs.user_state_path,
    "log": platformdirs.user_log_path,
}


def user_folder(kind: Kind) -> Path:
    """Lacuna's folder of a kind, which may not exist yet. Raises RequestError where the user has no home folder."""
    try:
        return _FOLDERS[kind]("lacuna", appauthor=False)
    except RuntimeError:  # a user id without a name, as in a container, and without HOME
        raise RequestError("there is no home folder: set HOME to a folder that Lacuna may write to") from None
