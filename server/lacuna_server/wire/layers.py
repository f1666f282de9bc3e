"""Reads the settings from their layers; a later one goes before an earlier one.

The layers are the defaults, the user's file, the project's file, the environment, and the command line or the editor.
"""

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from lacuna_model.files.opening import find_root
from lacuna_model.hub import models
from lacuna_model.hub.atomic import user_folder
from lacuna_server.wire.config import ConfigError, ServerConfig, Settings, check_private, read_toml

FILE_NAME = "lacuna.toml"
PROJECT_TABLE_FILE = "pyproject.toml"
DEFAULT = "default"
# How alike a key has to be to a wrong one to be proposed: 1 is the same.
NEAR = 0.75
_SETTINGS = {key.name: key for key in msgspec.structs.fields(Settings)}
_OF_SERVICE = {key.name: key for key in msgspec.structs.fields(ServerConfig)}
KEYS = _SETTINGS | _OF_SERVICE | _SETTINGS
# One service serves all projects, so none of them decides how it uses the machine.
FOR_PROJECTS = _SETTINGS.keys() - {"threads", "device", "port"}


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """The valid values of one source, such as a file, and one line for each value that is not valid."""

    source: str
    values: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


class SourcedValue(NamedTuple):
    """The value of a key, and the source that it comes from."""

    value: Any
    source: str


def user_file() -> Path:
    """Returns the path of the user's own file, whether or not it exists."""
    return user_folder("config") / FILE_NAME


def project_file(folder: Path) -> Path | None:
    """Returns the nearest file with settings from a folder up to the root of its project; None where there is none."""
    folder = Path(os.path.realpath(folder))
    root = find_root(folder / FILE_NAME) or folder
    for above in (folder, *folder.parents):
        for name in (FILE_NAME, PROJECT_TABLE_FILE):
            if (
                (file := above / name) != user_file()
                and os.path.isfile(file)
                and (name == FILE_NAME or _table(file) is not None)
            ):
                return file
        if above == root:
            return None
    return None


def _table(file: Path) -> Any:
    """The table of ours in a file; None without one, or where it cannot be parsed, of which we need not complain."""
    try:
        tool = read_toml(file).get("tool")
    except ConfigError:
        return None
    return tool.get("lacuna") if isinstance(tool, dict) else None


def read(folder: Path | None, *, user: Path | None = None) -> list[SettingsLayer]:
    """Returns the layers from the user's file to the environment; ``folder`` is inside the project (None: no project).

    ``user`` is read in place of the user's own file.
    """
    layers = []
    own = user or user_file()
    if user is not None or os.path.isfile(own):
        layers.append(_of_file(own, _own))
    if folder is not None and (project := project_file(folder)) is not None:
        layers.append(_of_file(project, _of_project))
    if named := os.environ.get(models.MODEL_VARIABLE, ""):
        layers.append(SettingsLayer(models.MODEL_VARIABLE, {"model": named}))
    return layers


def _of_file(file: Path, allowed: Callable[[Path, str, Any], Any]) -> SettingsLayer:
    given = _table(file) if file.name == PROJECT_TABLE_FILE else None
    try:
        given = read_toml(file) if given is None else given
    except ConfigError as error:
        return SettingsLayer(str(file), problems=(str(error),))
    return checked(str(file), given, lambda name, value: allowed(file, name, value))


def _own(file: Path, name: str, value: Any) -> Any:
    """A path of a model may begin with ~, and is relative to the folder of the user's file. A token is private."""
    if name == "token" and value:
        check_private(file)
    path = file.parent / os.path.expanduser(value) if name == "model" and value else None
    return str(path) if path is not None and os.path.exists(path) else value


def _of_project(file: Path, name: str, value: Any) -> Any:
    """Refuses what a project could do harm with: who may use the service, what it loads and where it writes."""
    if name not in FOR_PROJECTS:
        raise ConfigError(f"{name} cannot be set by a project, only in your own {user_file()}")
    if name == "model" and value not in {info.name for info in models.MODELS}:
        raise ConfigError(f"model: a project may only name a model of `lacuna models list`, not {value!r}")
    return value


def checked(
    source: str,
    given: Any,
    allowed: Callable[[str, Any], Any] = lambda name, value: value,
    called: Callable[[str], str] = str,
) -> SettingsLayer:
    """Returns the layer of some values.

    ``allowed`` returns a valid value, or raises ConfigError. ``called`` returns the name of a key for the user.
    """
    if not isinstance(given, Mapping):
        return SettingsLayer(source, problems=(f"{source}: the settings are no table",))
    values, problems = {}, []
    for name, value in given.items():
        try:
            if name not in KEYS:
                raise ConfigError(f"unknown key {name!r}{near(name, KEYS)}")
            values[name] = allowed(name, converted(KEYS[name].type, value, called(name)))
        except ConfigError as error:
            problems.append(f"{source}: {error}" if source else str(error))
    return SettingsLayer(source, values, tuple(problems))


def options(given: Mapping[str, Any]) -> SettingsLayer:
    """Returns the layer of options of the command line, which have the names of their keys."""
    return checked("", given, called=lambda name: f"--{name.removesuffix('_s').replace('_', '-')}")


def converted(kind: Any, value: Any, called: str) -> Any:
    """Returns a value in its own type; raises ConfigError that says what it must be."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise ConfigError(f"{called} must be {_words(inspect.type_info(kind))}") from None


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(extra_json_schema={"title": str(title)}):
            return title
        case inspect.Metadata(type=inner) | inspect.UnionType(types=(inner, _)):
            return _words(inner)
        case inspect.LiteralType(values=values):
            return " or ".join(f'"{value}"' for value in values)
        case inspect.IntType(ge=least, le=None) | inspect.FloatType(ge=least, le=None):
            return f"a number of at least {least:g}"
        case inspect.IntType(ge=least, le=most) | inspect.FloatType(ge=least, le=most):
            return f"{least:g} to {most:g}"
        case inspect.BoolType():
            return "true or false"
        case inspect.VarTupleType():
            return "a list of texts"
    return "a text"


def near(name: str, known: Iterable[str]) -> str:
    """Returns the question about an unknown name: whether one that is spelled almost like it is meant."""
    found = difflib.get_close_matches(name, list(known), cutoff=NEAR)
    return f", did you mean {' or '.join(found)}?" if found else ""


def problems(layers: Iterable[SettingsLayer]) -> list[str]:
    """Returns one line for each value that is not valid."""
    return [problem for layer in layers for problem in layer.problems]


def required(layers: Sequence[SettingsLayer]) -> Sequence[SettingsLayer]:
    """Returns the layers; raises ConfigError with the first problem."""
    for problem in problems(layers):
        raise ConfigError(problem)
    return layers


def effective(layers: Iterable[SettingsLayer]) -> dict[str, SourcedValue]:
    """Returns every key with the value that holds, which is that of the last layer that has the key."""
    found = {name: SourcedValue(key.default, DEFAULT) for name, key in KEYS.items()}
    for layer in layers:
        found |= {name: SourcedValue(value, layer.source) for name, value in layer.values.items()}
    return found


def settings(layers: Iterable[SettingsLayer]) -> Settings:
    """Returns the settings that hold."""
    found = effective(layers)
    return Settings(**{name: found[name].value for name in _SETTINGS})


def service(layers: Iterable[SettingsLayer]) -> ServerConfig:
    """Returns the configuration of the service that holds."""
    found = effective(layers)
    values = {name: found[name].value for name in _OF_SERVICE}
    return ServerConfig(**values | {"model": values["model"] or models.DEFAULT_MODEL})


def model(layers: Iterable[SettingsLayer]) -> models.Choice:
    """Returns the model that is used where a request names none, and why."""
    found = effective(layers)["model"]
    return models.Choice(found.value, f"{found.source} names it") if found.value else models.DEFAULT
