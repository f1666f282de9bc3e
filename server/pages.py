"""Writes the pages that are made of the code: ``python server/pages.py``, after each change of what they describe.

They are ``PROTOCOL.md``; ``HTTP.md``, from the table of addresses and fields;
and ``CONFIGURATION.md``, from the structs of the settings. No package has this module.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from lacuna_server.http.shapes.question import REFUSED
from lacuna_server.http.shapes.table import PLAIN, SHAPES
from lacuna_server.wire import protocol
from lacuna_server.wire.config import ServerConfig, Settings, properties
from lacuna_server.wire.layers import FOR_PROJECTS

FOLDER = Path(__file__).parent
MADE = "Made by `python server/pages.py`; do not edit."

# --- the protocol

_LITERAL = re.compile(r"``(.+?)``")
_ERROR = re.compile(r'^    "(\w+)",  # (.+)$', re.MULTILINE)


def protocol_page() -> str:
    """Return the page of the websocket protocol, made of the structs of its messages and their docstrings."""
    client, server = get_args(protocol.ClientMessage), get_args(protocol.ServerMessage)
    lines = [
        "# The websocket protocol of Lacuna",
        "",
        MADE,
        "",
        *_prose(inspect.getdoc(protocol) or ""),
        "## What the client sends",
        "",
        *(line for message in client for line in _struct(message)),
        "## What the server sends",
        "",
        *(line for message in server for line in _struct(message)),
        "## What messages are made of",
        "",
        *(line for part in _parts((*client, *server)) for line in _struct(part)),
        "## Error codes",
        "",
        "| Code | Meaning |",
        "|---|---|",
        *(f"| `{code}` | {_marked(meaning)} |" for code, meaning in _ERROR.findall(inspect.getsource(protocol))),
    ]
    return "\n".join(lines) + "\n"


def _struct(struct: type[msgspec.Struct]) -> Iterator[str]:
    """Yield the section of a struct: its docstring, which explains every field, and the table of its fields."""
    tag = struct.__struct_config__.tag
    is_message = issubclass(struct, protocol.Message)
    yield from (f"### `{tag}`" if is_message else f"### {struct.__name__}", "")
    if tag and not is_message:
        yield from (f"Its `type` is `{tag}`.", "")
    yield from _prose(inspect.getdoc(struct) or "")
    fields = msgspec.structs.fields(struct)
    if fields:
        yield from ("| Field | Type | Default |", "|---|---|---|")
        for field in fields:
            kind = _type(field.type).replace("|", "\\|")
            yield f"| `{field.name}` | {kind} | {_default(field)} |"
        yield ""


def _prose(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (textwrap.fill(_marked(" ".join(paragraph.split())), 118), "")


def _marked(text: str) -> str:
    return _LITERAL.sub(r"`\1`", text)


def _type(annotation: Any) -> str:
    """Return the name of a type in words that are not specific to Python."""
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return " | ".join(f'`"{value}"`' for value in get_args(annotation))
    if get_origin(annotation) is tuple:
        return f"list of {_type(get_args(annotation)[0])}"
    if get_origin(annotation) is UnionType:
        return " | ".join(map(_type, get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return {str: "text", int: "integer", float: "number", bool: "boolean", NoneType: "null"}[annotation]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, msgspec.Struct):
        return "its defaults"
    return f"`{msgspec.json.encode(value).decode()}`"


def _parts(messages: tuple[type[msgspec.Struct], ...]) -> list[type[msgspec.Struct]]:
    """Return the structs that occur in the fields of messages, in order of first occurrence."""
    found: dict[type[msgspec.Struct], None] = {}
    for message in messages:
        for field in msgspec.structs.fields(message):
            for kind in _kinds(field.type):
                if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                    found |= dict.fromkeys((kind, *_parts((kind,))))
    return list(found)


def _kinds(annotation: Any) -> Iterator[Any]:
    """Yield a type and those that it is made of, at any depth."""
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


# --- HTTP

HTTP_HEAD = f"""# HTTP

{MADE}

The service answers in the formats of other services, so that their clients work with it. OpenAI's clients take the base
address with `/v1`, such as `http://127.0.0.1:8377/v1`. `/openapi.json` describes every body and answer for programs.
An unknown address, a wrong method and a refusal are answered with an error in JSON; its message of one line names the
right address, or the wrong field (which is also `param` in OpenAI's format).

| Address | What it does |
|---|---|
"""
FORMS = """
## The form of an answer

An answer keeps to a JSON schema or a regular expression where a request demands one: the model chooses among the tokens
that lead there, so that its answer is valid whatever it would have written. One form is possible in a request.

| Field | An answer is |
|---|---|
| `response_format` | by `type`: `text`; `json_object`, any object; `json_schema`, what `json_schema.schema` says |
| `json_schema` | what the schema says |
| `regex` | what it matches whole; no look-around or back-references |

A fill may have 256 tokens, an answer to a chat or with a form 2,048. An answer with a form that is cut off is completed
with a short text that the form allows, and its `finish_reason` is `length`; it is empty where there is no such text. It
is streamed at its end. The answers to edits, updates and next-edit prompts have a form of their own, so that another
one is refused there.

## Other fields that are honoured

| Field | Meaning |
|---|---|
| `max_tokens`, `max_completion_tokens`, `n_predict` | the most tokens; negative: the default |
| `n`, `n_cmpl` | how many answers, 1 to 8; they differ, so there may be fewer |
| `stop` | texts before which an answer ends, one or a list; the window of a next-edit prompt is not cut |
| `temperature` | 0 takes the most probable token, which is the default |
| `seed`, `random_seed` | the random seed; negative: any |
| `t_max_predict_ms` | ends a fill without a form after this time once it has a whole line; 0 and less: no limit |
| `stream` | server-sent events |
| `stream_options.include_usage` | in `/v1/completions` a last event with the usage; chats always tell it |
| `diffusing` | in `/v1/fim/completions` and chats, each event has the whole text so far |
| `response_fields` | in llama.cpp's formats, the fields of the answer |

## Fields that are refused

A request is refused with status 400 where one of these demands something; null, false, 0 and what is empty demand
nothing, and `tool_choice` may be `auto` or `none`. All other fields, such as `top_p` and `model`, are read over.

| Field | Why |
|---|---|
"""


def http_page() -> str:
    """Return the page of the HTTP addresses, and of what becomes of every field of a request."""
    addresses = [f"| {_code(shape.paths)} | {shape.summary} |\n" for shape in SHAPES]
    addresses += [f"| {_code([route.path])} | {route.summary} |\n" for route in PLAIN]
    return "".join((HTTP_HEAD, *addresses, FORMS, *_rows(REFUSED)))


def _rows(fields: Mapping[str, str]) -> Iterator[str]:
    """Yield a row for every reason, with all its fields."""
    for why in dict.fromkeys(fields.values()):
        yield f"| {_code([name for name in fields if fields[name] == why])} | {why} |\n"


def _code(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# --- settings

SETTINGS_HEAD = f"""# Configuration

{MADE}

Two files have the settings for the command line, the language server and the service. Both are optional:

- **yours**: `lacuna.toml` in the user's configuration folder (Linux: `~/.config/lacuna/lacuna.toml`).
  `lacuna config --path` prints the path.
- **the project's**: the nearest `lacuna.toml`, or table `[tool.lacuna]` of a `pyproject.toml`, from the file (or the
  current folder) up to the root of the project.

```toml
model = "qwen2.5-coder-0.5b"
suggest = "quiet"
disabled_languages = ["markdown", "plaintext"]
```

An option of the command line or a setting of the editor goes before the variable `LACUNA_MODEL`, which goes before the
project's file, which goes before yours, which goes before the default. `lacuna config [FILE]` prints the value of every
key and where it comes from. Lacuna reports an unknown key and a wrong value in one line. The command line and the
service then stop; the language server ignores the value and goes on. Changes hold from the next start of a program.

The language server reads the project's file of the first folder that the editor opens. It starts the service with
`model`, `threads`, `device` and `port`; a service that runs already keeps its own.

## Keys of both files

The command line reads `model`, `workspace` and `max_tokens`; the language server reads all keys. Editors write the
names in camel case, such as `lacuna.maxTokens`.
"""
OWN_KEYS = """
## Keys of your own file only

A project's file cannot set these, because they decide how all projects use the machine, who may use the service, what
it loads and where it writes. `threads`, `device` and `port` are settings of editors, too. `lacuna serve --config FILE`
reads another file in place of yours. Times are in seconds, sizes in bytes of UTF-8.
"""
VARIABLES = {
    "LACUNA_MODEL": "the model, as the key `model`",
    "LACUNA_CACHE": "folder of weights, their prepared form and compiled kernels; Linux: `~/.cache/lacuna`",
    "LACUNA_STATE": "folder of the journals of refactors; Linux: `~/.local/state/lacuna`",
    "LACUNA_LIBLLAMA": "the libllama, as the key `libllama`",
    "LACUNA_TOKEN": "token that `lacuna-lsp --engine URL` sends",
    "LACUNA_LSP_TOKEN": "token that clients of `lacuna-lsp --ws` must send; unset: a new one, which is printed",
}
_KINDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true, false", "null": "unset"}


def settings_page() -> str:
    """Return the page of every key of ``lacuna.toml``."""
    keys = properties(ServerConfig) | properties(Settings)
    shared = {name: about for name, about in properties(Settings).items() if name in FOR_PROJECTS}
    own = {name: about for name, about in keys.items() if name not in FOR_PROJECTS}
    variables = (f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items())
    environment = ("", "## Environment", "", "| Variable | Meaning |", "|---|---|", *variables)
    return "\n".join([SETTINGS_HEAD, *_table(shared), OWN_KEYS, *_table(own), *environment]) + "\n"


def _table(keys: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield from ("| Key | Values | Default | Meaning |", "|---|---|---|---|")
    for name, about in keys.items():
        default = "unset" if about["default"] is None else f"`{msgspec.json.encode(about['default']).decode()}`"
        yield f"| `{name}` | {_values(about)} | {default} | {about['description']} |"


def _values(about: dict[str, Any]) -> str:
    """Return the type of a key in words, with its limits."""
    if "anyOf" in about:
        return ", ".join(map(_values, about["anyOf"]))
    if "enum" in about:
        return ", ".join(f'`"{value}"`' for value in sorted(about["enum"]))
    if about["type"] == "array":
        return f"list of {_values(about['items'])}s"
    least, most = about.get("minimum"), about.get("maximum")
    limits = f" {least} to {most}" if most is not None else f" from {least}" if least is not None else ""
    return _KINDS[about["type"]] + limits


PAGES = {
    FOLDER / "PROTOCOL.md": protocol_page,
    FOLDER / "HTTP.md": http_page,
    FOLDER / "CONFIGURATION.md": settings_page,
}

if __name__ == "__main__":
    for file, page in PAGES.items():
        file.write_text(page(), "utf-8")
