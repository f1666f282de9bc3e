"""What a client can do and wants."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol.types import ClientCapabilities
from pygls.uris import to_fs_path

from lacuna_server.wire import layers
from lacuna_server.wire.config import ConfigError, Settings
from lacuna_server.wire.layers import SettingsLayer, converted, near

STATUS_CAPABILITY = "serverStatusNotification"
INSTRUCTION_CAPABILITY = "lacunaInstructions"


def shows_progress(client: ClientCapabilities) -> bool:
    """Whether the client shows progress bars."""
    return client.window is not None and bool(client.window.work_done_progress)


def hears_status(client: ClientCapabilities) -> bool:
    """Whether the client accepts ``experimental/serverStatus``, declared as rust-analyzer's clients do."""
    return isinstance(client.experimental, Mapping) and bool(client.experimental.get(STATUS_CAPABILITY))


def asks_for_instructions(client: ClientCapabilities) -> bool:
    """Whether the client asks the user for the instruction of an edit that has none."""
    return isinstance(client.experimental, Mapping) and bool(client.experimental.get(INSTRUCTION_CAPABILITY))


def shows_documents(client: ClientCapabilities) -> bool:
    """Whether the client can open a document on request."""
    return client.window is not None and client.window.show_document is not None


def completes_inline(client: ClientCapabilities) -> bool:
    """Whether the client supports inline completion (LSP 3.18)."""
    return client.text_document is not None and client.text_document.inline_completion is not None


def has_configuration(client: ClientCapabilities) -> bool:
    """Whether the server can request the client's settings."""
    return client.workspace is not None and bool(client.workspace.configuration)


def versions_edits(client: ClientCapabilities) -> bool:
    """Whether the client accepts edits for a given version of a document."""
    edit = client.workspace.workspace_edit if client.workspace is not None else None
    return edit is not None and bool(edit.document_changes)


def confirms_edits(client: ClientCapabilities) -> bool:
    """Whether the client can ask the user to confirm single edits before it applies them."""
    edit = client.workspace.workspace_edit if client.workspace is not None else None
    return versions_edits(client) and edit is not None and edit.change_annotation_support is not None


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
    problems: list[str] = []
    good: dict[str, Any] = {}
    for name, value in section(values).items():
        if value is None:
            continue
        try:
            good |= _checked(name, value)
        except ConfigError as error:
            problems.append(str(error))
    return SettingsLayer(EDITOR, good, tuple(problems))


def _checked(name: str, value: object) -> dict[str, Any]:
    if name not in _FIELDS:
        raise ConfigError(f"unknown setting lacuna.{name}{near(name, _FIELDS)}")
    return {_FIELDS[name].name: converted(_FIELDS[name].type, value, f"lacuna.{name}")}


def section(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the part under ``lacuna`` if the client sends its whole configuration, else all of ``values``."""
    inner = values.get("lacuna")
    inner = {} if inner == [] else inner
    return inner if isinstance(inner, Mapping) else values
