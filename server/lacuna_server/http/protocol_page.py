"""The page of the websocket protocol, made of the structs of its messages and their docstrings."""

import functools
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from lacuna_server.wire import protocol

_HEADING = re.compile(r"<h3>(\w+)</h3>")
_LITERAL = re.compile(r"``(.+?)``")
_ERROR = re.compile(r'^    "(\w+)",  # (.+)$', re.MULTILINE)


def in_markdown(note: str = "") -> str:
    """Return the page in Markdown, with a note below its title."""
    client, server = get_args(protocol.ClientMessage), get_args(protocol.ServerMessage)
    lines = [
        "# The websocket protocol of Lacuna",
        "",
        *([note, ""] if note else []),
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


@functools.cache
def in_html() -> str:
    """Return the page in HTML, as the service shows it."""
    from markdown_it import MarkdownIt  # most services show no page, and start without it

    body = MarkdownIt().enable("table").render(in_markdown())
    body = _HEADING.sub(lambda found: f'<h3 id="{found[1].lower()}">{found[1]}</h3>', body)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Lacuna protocol</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="/playground/icon.svg">'
        '<link rel="stylesheet" href="/playground/page.css"></head>'
        f"<body><main>{body}</main></body></html>"
    )


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
