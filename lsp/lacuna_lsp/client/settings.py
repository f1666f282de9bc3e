"""What a client wants: its settings over those of files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pygls.uris import to_fs_path

from lacuna_server.wire import layers
from lacuna_server.wire.config import ConfigError, Settings
from lacuna_server.wire.layers import SettingsLayer, converted, near

EDITOR = "the editor"
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}


def folders(uris: Iterable[str], root: str | None) -> list[str]:
    """Returns the paths of a client's open folders, or of its ``root`` if it has none."""
    return [path for uri in list(uris) or [root or ""] if (path := to_fs_path(uri))]


def of_files(paths: Sequence[str]) -> list[SettingsLayer]:
    """Returns the settings of the user's file, of the project in the first folder, and of the environment."""
    return layers.read(Path(paths[0]) if paths else None)


def parse(values: object) -> SettingsLayer:
    """Returns the settings in ``values`` by their names in Python; one that is null counts as not sent.

    Lua writes an empty object as ``[]``.
    """
    if values is None or values == []:
        return SettingsLayer(EDITOR)
    if not isinstance(values, Mapping):
        return SettingsLayer(EDITOR, problems=(f"the settings are not an object: {values!r}",))
    inner = values.get("lacuna")  # of a client that sends its whole configuration
    inner = {} if inner == [] else inner
    problems: list[str] = []
    good: dict[str, Any] = {}
    for name, value in (inner if isinstance(inner, Mapping) else values).items():
        if value is None:
            continue
        if name not in _FIELDS:
            problems.append(f"unknown setting lacuna.{name}{near(name, _FIELDS)}")
        else:
            try:
                good[_FIELDS[name].name] = converted(_FIELDS[name].type, value, f"lacuna.{name}")
            except ConfigError as error:
                problems.append(str(error))
    return SettingsLayer(EDITOR, good, tuple(problems))
