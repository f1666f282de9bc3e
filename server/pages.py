"""Writes the pages that are made of the code: ``python server/pages.py``, after each change of what they describe.

They are ``PROTOCOL.md``; ``HTTP.md``, from the table of addresses and fields;
and ``CONFIGURATION.md``, from the structs of the settings. No package has this module.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from lacuna_server.http.addresses import PLAIN, SHAPES
from lacuna_server.http.shapes.exchange import REFUSED
from lacuna_server.wire import protocol
from lacuna_server.wire.config import ServerConfig, Settings, properties
from lacuna_server.wire.layers import FOR_PROJECTS

FOLDER = Path(__file__).parent
MADE = "Made by `python server/pages.py`; do not edit."

# --- the protocol

_LITERAL = re.compile(r"``(.+?)``")
_KINDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true, false", "null": "unset"}
_ERROR = re.compile(r'^    "(\w+)",  # (.+)$', re.MULTILINE)


def protocol_page() -> str:
    """Return the page of the websocket protocol, made of the structs of its messages and their docstrings."""
    client, server = get_args(protocol.ClientMessage), get_args(protocol.ServerMessage)
    _, structs = msgspec.json.schema_components((*client, *server))
    lines = ["# The websocket protocol of Lacuna", "", MADE, "", *_prose(inspect.getdoc(protocol) or "")]
    for head, messages in (("## What the client sends", client), ("## What the server sends", server)):
        lines += [head, ""]
        for message in messages:
            lines += _struct(structs.pop(message.__name__), is_message=True)
    lines += ["## What messages are made of", ""]
    for part in structs.values():
        lines += _struct(part)
    codes = _ERROR.findall(inspect.getsource(protocol))
    lines += ["## Error codes", "", *_table(("Code", "Meaning"), ((f"`{code}`", _marked(why)) for code, why in codes))]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _struct(struct: dict[str, Any], *, is_message: bool = False) -> Iterator[str]:
    """Yield the section of a struct: its docstring, which explains every field, and the table of its fields."""
    fields = dict(struct["properties"])
    tag = fields.pop("type")["enum"][0] if "enum" in fields.get("type", ()) else ""
    yield from (f"### `{tag}`" if is_message else f"### {struct['title']}", "")
    if tag and not is_message:
        yield from (f"Its `type` is `{tag}`.", "")
    yield from _prose(struct["description"])
    if fields:
        rows = (
            (
                f"`{name}`",
                _values(about, r" \| ", limits=False),
                "required" if name in struct["required"] else _default(about),
            )
            for name, about in fields.items()
        )
        yield from (*_table(("Field", "Type", "Default"), rows), "")


def _prose(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (textwrap.fill(_marked(" ".join(paragraph.split())), 118), "")


def _marked(text: str) -> str:
    return _LITERAL.sub(r"`\1`", text)


def _default(about: dict[str, Any]) -> str:
    value = about["default"]
    if isinstance(value, dict):
        return "its defaults"
    return "unset" if value is None else f"`{msgspec.json.encode(value).decode()}`"


def _values(about: dict[str, Any], between: str = ", ", *, limits: bool = True) -> str:
    """Return the type of a field in words, with its limits."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in about:
        return between.join(_values(one, between, limits=limits) for one in about["anyOf"])
    if "enum" in about:
        return between.join(f'`"{value}"`' for value in sorted(about["enum"]))
    if about["type"] == "array":
        return f"list of {_values(about['items'] or about['prefixItems'][0], limits=limits)}"
    least, most = (about.get("minimum"), about.get("maximum")) if limits else (None, None)
    between_them = f" {least} to {most}" if most is not None else f" from {least}" if least is not None else ""
    return _KINDS[about["type"]] + between_them


# --- HTTP

HTTP_HEAD = f"""# HTTP

{MADE}

The service answers in the formats of other services, so that their clients work with it. OpenAI's clients take the base
address with `/v1`, such as `http://127.0.0.1:8377/v1`. `/openapi.json` describes every body and answer for programs.
An unknown address, a wrong method and a refusal are answered with an error in JSON; its message of one line names the
right address, or the wrong field (which is also `param` in OpenAI's format).
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
"""


def http_page() -> str:
    """Return the page of the HTTP addresses, and of what becomes of every field of a request."""
    addresses = [(_code(shape.paths), shape.summary) for shape in SHAPES]
    addresses += [(_code([route.path]), route.summary) for route in PLAIN]
    reasons = dict.fromkeys(REFUSED.values())
    refused = [(_code([name for name in REFUSED if REFUSED[name] == why]), why) for why in reasons]
    tables = _table(("Address", "What it does"), addresses), _table(("Field", "Why"), refused)
    return "\n".join([HTTP_HEAD, *tables[0], FORMS, *tables[1]]) + "\n"


def _code(names: Sequence[str]) -> str:
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
    "`LACUNA_MODEL`": "the model, as the key `model`",
    "`LACUNA_CACHE`": "folder of weights, their prepared form and compiled kernels; Linux: `~/.cache/lacuna`",
    "`LACUNA_STATE`": "folder of the journals of refactors; Linux: `~/.local/state/lacuna`",
    "`LACUNA_LIBLLAMA`": "the libllama, as the key `libllama`",
    "`LACUNA_TOKEN`": "token that `lacuna-lsp --engine URL` sends",
    "`LACUNA_LSP_TOKEN`": "token that clients of `lacuna-lsp --ws` must send; unset: a new one, which is printed",
}


def settings_page() -> str:
    """Return the page of every key of ``lacuna.toml``."""
    keys = properties(ServerConfig) | properties(Settings)
    shared = {name: about for name, about in properties(Settings).items() if name in FOR_PROJECTS}
    own = {name: about for name, about in keys.items() if name not in FOR_PROJECTS}
    environment = ("", "## Environment", "", *_table(("Variable", "Meaning"), VARIABLES.items()))
    return "\n".join([SETTINGS_HEAD, *_keys(shared), OWN_KEYS, *_keys(own), *environment]) + "\n"


def _keys(keys: dict[str, dict[str, Any]]) -> Iterator[str]:
    rows = ((f"`{name}`", _values(one), _default(one), one["description"]) for name, one in keys.items())
    return _table(("Key", "Values", "Default", "Meaning"), rows)


PAGES = {
    FOLDER / "PROTOCOL.md": protocol_page,
    FOLDER / "HTTP.md": http_page,
    FOLDER / "CONFIGURATION.md": settings_page,
}

if __name__ == "__main__":
    for file, page in PAGES.items():
        file.write_text(page(), "utf-8")
