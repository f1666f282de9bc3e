"""A client's settings: one frozen struct with defaults, and validation that reports each wrong value."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1, le=8)]
Milliseconds = Annotated[int, Meta(ge=0, le=60_000)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """The settings of a user, under ``lacuna`` and in camel case: ``maxTokens`` for ``max_tokens``.

    ``enabled`` turns suggestions on. ``automatic`` shows them while the user types; without it, only on request.
    ``multiline`` says when a suggestion may have several lines: where a block begins, always or never. ``debounce``
    waits for a pause in the typing before it requests a suggestion; the length follows the typing speed. ``read_ahead``
    lets the engine encode a document's context while the cursor rests. ``min_confidence`` is the least confidence in
    the first line of a suggestion that is shown without a request. ``candidates`` is the number of suggestions on
    request. ``max_tokens`` and ``max_lines`` limit the length of a suggestion. ``deadline_ms`` limits the time for a
    suggestion in milliseconds; at the limit it ends with the longest valid part (0: no limit). In
    ``disabled_languages``, which are LSP language ids, nothing is suggested.
    """

    enabled: bool = True
    automatic: bool = True
    multiline: Literal["auto", "always", "never"] = "auto"
    debounce: bool = True
    read_ahead: bool = True
    min_confidence: Share = 0.3
    candidates: Count = 3
    max_tokens: Annotated[int, Meta(ge=1, le=512)] = 96
    max_lines: Annotated[int, Meta(ge=1, le=100)] = 12
    deadline_ms: Milliseconds = 5000
    disabled_languages: tuple[str, ...] = ()


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}


def parse(values: object) -> tuple[Settings, list[str]]:
    """Returns the settings in ``values``, and one line for each unknown or invalid one, which gets its default."""
    if values is None:
        return Settings(), []
    if not isinstance(values, Mapping):
        return Settings(), [f"the settings are not an object: {values!r}"]
    problems, good = [], {}
    for name, value in section(values).items():
        if name not in _FIELDS:
            problems.append(f"unknown setting lacuna.{name}")
            continue
        try:
            good[name] = msgspec.to_builtins(msgspec.convert(value, _FIELDS[name].type))
        except msgspec.ValidationError as error:
            problems.append(f"lacuna.{name}: {error}; the default is {_FIELDS[name].default!r}")
    return msgspec.convert(good, Settings), problems


def section(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the part under ``lacuna`` if the client sends its whole configuration, else all of ``values``."""
    inner = values.get("lacuna")
    return inner if isinstance(inner, Mapping) else values
