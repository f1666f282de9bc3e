"""Reads the public names of a package of Go, or of a module of Rust, line by line, as their formatters lay them out."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from lacuna_model.snippets.packages.module_names import (
    MAX_NAME,
    MAX_SIGNATURE,
    ModuleNames,
    closed,
    cut,
    first_of,
    in_time,
    split,
)

_COMMENTS = re.compile(r"(?P<gone>/\*.*?(?:\*/|\Z)|//[^\n]*)|\"(?:\\.|[^\"\\\n])*\"?|`[^`]*`?", re.DOTALL)
_NAME = rf"[^\W\d]\w{{0,{MAX_NAME - 1}}}\b"
_PUBLIC = rf"[A-Z]\w{{0,{MAX_NAME - 1}}}\b"
_GO = re.compile(
    rf"^func[ \t]+(?:\([ \t]*(?:\w+[ \t]+)?\*?(?P<owner>{_NAME})[^()\n]{{0,200}}\)[ \t]*)?(?P<function>{_PUBLIC})"
    rf"|^type[ \t]+(?P<type>{_PUBLIC})(?P<free>)|^(?:const|var)[ \t]+(?P<value>{_PUBLIC})"
    rf"|^(?P<around>)(?P<all>const|var|type)[ \t]*\(|^\t(?P<member>{_PUBLIC})|^(?P<public>)[^\s]",
    re.MULTILINE,
)
_FN = r"(?:(?:const|async|unsafe|default|extern(?:[ \t]+\"[^\"\n]{0,20}\")?)[ \t]+)*fn[ \t]+"
_RUST = re.compile(
    rf"^pub[ \t]+{_FN}(?P<function>{_NAME})(?P<owner>)"
    rf"|^pub[ \t]+(?:unsafe[ \t]+)?(?:struct|union|type|(?P<free>enum|trait))[ \t]+(?P<type>{_NAME})"
    rf"|^(?:pub[ \t]+(?:const|static|mod)|macro_rules!)[ \t]+(?P<value>{_NAME})"
    rf"|^(?:unsafe[ \t]+)?impl\b(?P<around>[^\n{{]{{0,300}})(?P<all>)"
    rf"|^    (?P<public>pub[ \t]+)?(?:{_FN}|(?:const|type)[ \t]+)?(?P<member>{_NAME})|^[^\s]",
    re.MULTILINE,
)
_GENERIC = re.compile(r"(?:<[^()\n]{0,300}?>|\[[^()\n]{0,300}?\])(?=\()")
_ARGUMENTS = re.compile(r"<[^<>]*>")
# What ends a declaration, one without parameters at the latest; and Rust's lifetimes, and macros that may declare more.
_END, _VALUE_END = re.compile(r"[{;\n]|\bwhere\b"), re.compile(r"[{;\n=,`]")
_LIFETIME = re.compile(r"'[a-z_]\w{0,30}\b(?!')[ \t]*")
_MAKING = re.compile(r"^\w+![ \t]*[({]", re.MULTILINE)
_SELVES = ("self", "&self", "&mut self", "mut self")


def _read(pattern: re.Pattern[str], language: str, text: str) -> ModuleNames:
    """The names of a module with this text."""
    code = _COMMENTS.sub(lambda match: "" if match["gone"] else match[0], text)
    code = _LIFETIME.sub("", code) if language == "rust" else code
    names, members, fields = dict[str, str](), dict[str, dict[str, str]](), dict[str, list[str]]()
    owner: str | None = None  # whose members the next indented lines are: "" of the module, None of nothing public
    is_free = is_declaring = False  # whether all members are public, and stand where their type does
    for match in in_time(pattern.finditer(code)):
        if inner := match["member"]:
            if owner is not None and (is_free or match["public"]) and inner not in ("pub", "fn"):
                table = members.setdefault(owner, {}) if owner else names
                told = table.setdefault(inner, _signature(code, match.start("member"), inner))
                if owner in fields and is_declaring:
                    fields[owner].append(told or inner)
            continue
        owner, is_free, is_declaring = None, False, match["type"] is not None
        if name := match["function"]:
            table = members.setdefault(match["owner"], {}) if match["owner"] else names
            table.setdefault(name, _signature(code, match.start("function"), f"{_KEYWORDS[language]} {name}"))
        elif name := match["value"]:
            names.setdefault(name, "")
        elif name := match["type"]:
            names.setdefault(name, "")
            fields.setdefault(name, [])
            owner, is_free = name, match["free"] is not None
        elif match["all"]:
            owner, is_free = "", True
        elif around := match["around"]:
            owner, is_free = _implementing(around), " for " in around
    names |= {name: _typed(name, parts) for name, parts in fields.items()}
    if language == "go":  # where an import offers nothing to others
        return ModuleNames(names, members)
    return ModuleNames.of(code, language, names, members, is_open=bool(_MAKING.search(code)))


_KEYWORDS = {"go": "func", "rust": "fn"}
READERS: Mapping[str, Callable[[str], ModuleNames]] = {
    "go": partial(_read, _GO, "go"),
    "rust": partial(_read, _RUST, "rust"),
}


def _implementing(head: str) -> str | None:
    """The type that the head of a block of Rust implements something for."""
    bare, last = head, ""
    while bare != last and len(bare) <= MAX_SIGNATURE * 2:
        bare, last = _ARGUMENTS.sub("", bare), bare
    found = re.search(rf"({_NAME})[ \t]*(?:\bwhere\b.*)?$", bare.rpartition(" for ")[2].partition(" where ")[0].strip())
    return found[1] if found is not None else None


def _signature(code: str, start: int, shown: str) -> str:
    """The signature of a function, or the type of a value, whose name stands at a place."""
    name = re.compile(r"\w+").match(code, start)
    end = name.end() if name is not None else start
    generic = _GENERIC.match(code, end)
    opening = generic.end() if generic is not None else end
    last = closed(code, opening)
    stop = (_VALUE_END if last == opening else _END).search(code, last, last + MAX_SIGNATURE)
    behind = " ".join(code[last : stop.start() if stop is not None else last].split()).rstrip(" ,")
    if last == opening:
        return f"{shown} {behind}".replace(" :", ":") if behind and len(behind) < MAX_SIGNATURE // 2 else ""
    parts = [part for part in split(code[opening + 1 : last - 1]) if part not in _SELVES]
    return cut(f"{shown}({', '.join(parts)}){f' {behind}' if behind else ''}")


def _typed(name: str, fields: list[str]) -> str:
    """The signature of a type: its first members, as many as are short."""
    parts = first_of(fields, MAX_SIGNATURE - len(name) - 12)
    return f"type {name} {{ {'; '.join(parts)} }}" if parts else f"type {name}"
