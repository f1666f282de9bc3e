"""The settings that a client sends, checked: each unknown or wrong one is reported."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lacuna_server.wire.config import ConfigError
from lacuna_server.wire.layers import Layer, converted, near
from lacuna_server.wire.settings import Settings

EDITOR = "the editor"
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}


def parse(values: object) -> Layer:
    """Returns the settings in ``values`` by their names in Python; one that is null counts as not sent."""
    if values is None:
        return Layer(EDITOR)
    if not isinstance(values, Mapping):
        return Layer(EDITOR, problems=(f"the settings are not an object: {values!r}",))
    problems: list[str] = []
    good: dict[str, Any] = {}
    for name, value in section(values).items():
        if value is None:
            continue
        try:
            good |= _checked(name, value)
        except ConfigError as error:
            problems.append(str(error))
    return Layer(EDITOR, good, tuple(problems))


def _checked(name: str, value: object) -> dict[str, Any]:
    if name not in _FIELDS:
        raise ConfigError(f"unknown setting lacuna.{name}{near(name, _FIELDS)}")
    return {_FIELDS[name].name: converted(_FIELDS[name].type, value, f"lacuna.{name}")}


def section(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the part under ``lacuna`` if the client sends its whole configuration, else all of ``values``."""
    inner = values.get("lacuna")
    return inner if isinstance(inner, Mapping) else values
