"""Reads the names of a module of JavaScript or TypeScript, from its types or its code, by its brackets."""

import re
from dataclasses import dataclass, field, replace

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

_COMMENTS = re.compile(
    r"(?P<gone>/\*.*?(?:\*/|\Z)|//[^\n]*)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|`(?:\\.|[^`\\])*`?", re.DOTALL
)
_NAME = rf"[\w$]{{1,{MAX_NAME}}}"
_READ = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|`(?:\\.|[^`\\])*`?|(?P<mark>[(){}])"
    r"|^[ \t]*(?:export[ \t]+)?(?P<default>default[ \t]+)?(?:declare[ \t]+)?(?:abstract[ \t]+)?(?:async[ \t]+)?"
    r"(?:const[ \t]+(?=enum\b))?"
    rf"(?P<kind>function|class|interface|type|enum|namespace|module|const|let|var)\b[ \t*]*(?P<name>{_NAME})?"
    r"|(?:^|(?<=[{;]))[ \t]*(?:(?:public|static|readonly|abstract|async|get|set|declare|override)[ \t]+)*"
    rf"(?P<member>{_NAME})\??(?=[ \t]*[(<:=;])",
    re.MULTILINE,
)
_ALIASED = re.compile(r"^[ \t]*export[ \t]+(?:type[ \t]+)?\{([^}]{0,20000})\}(?![ \t]*from)", re.MULTILINE)
_DEFAULT = re.compile(
    rf"^[ \t]*(?:export[ \t]*=|export[ \t]+default|module\.exports[ \t]*=)[ \t]*({_NAME})", re.MULTILINE
)
_COMMON = re.compile(rf"\b(?:module\.)?exports\.({_NAME})[ \t]*=(?!=)|defineProperty\(exports, ?[\"']({_NAME})")
_OBJECT = re.compile(r"\bmodule\.exports[ \t]*=[ \t]*(?=\{)")
_STARS = re.compile(
    r"\b(?:__exportStar\([ \t]*require|module\.exports[ \t]*=[ \t]*require)\([ \t]*['\"]([^'\"\n]+)['\"]"
)
# Of what is exported so, not all names are told; and types may be in a file that another one refers to.
_UNTOLD = re.compile(r"\bexports\b|\bexport[ \t]*=|\brequire\(|\A(?!.*\bexport\b)", re.MULTILINE | re.DOTALL)
_GENERIC = re.compile(r"[ \t]*<[^()]{0,300}?>(?=\()")
_TYPE = re.compile(r"\s*:\s*([^;{}\n]{1,60}?)\s*(?=[;{}\n]|$)")
_OPEN = ("namespace", "module")
_WITH_MEMBERS = ("class", "interface", "enum")


@dataclass(slots=True)
class _Block:
    """A block: the kind of its head, the name that it declares, and how many parentheses were open before it."""

    kind: str = ""
    name: str = ""
    parentheses: int = 0


@dataclass(slots=True)
class _Found:
    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    members: dict[str, dict[str, str]] = field(default_factory=dict)
    default: str = ""


def read(text: str) -> ModuleNames:
    """The names of the module with this text."""
    code = _COMMENTS.sub(lambda match: "" if match["gone"] else match[0], text)
    found = _declared(code)
    for name, (kind, table) in found.kinds.items():
        table[name] = table[name] or _typed(kind, name, found.members[name])
    for match in _ALIASED.finditer(code):
        for part in match[1].split(","):
            name, _, local = (word.strip() for word in part.strip().removeprefix("type ").partition(" as "))
            if 0 < len(local or name) <= MAX_NAME:
                found.names[local or name] = found.names.get(name, "")
    for match in _COMMON.finditer(code):
        found.names.setdefault(match[1] or match[2], "")
    for match in _OBJECT.finditer(code):
        for part in split(code[match.end() + 1 : closed(code, match.end()) - 1]):
            if key := re.match(_NAME, part):
                found.names.setdefault(key[0], "")
    whole = _DEFAULT.search(code)
    if default := found.default or (whole[1] if whole is not None else ""):
        found.names["default"] = found.names.get(default, "")
        for name, told in found.members.get(default, {}).items():  # what is exported as a whole, such as a namespace
            if whole is not None and default not in found.kinds:
                found.names.setdefault(name, told)
    names = ModuleNames.of(code, "typescript", found.names, found.members, is_open=bool(_UNTOLD.search(code)))
    return replace(names, stars=(*names.stars, *(match[1] for match in _STARS.finditer(code))))


def _declared(code: str) -> _Found:
    """What a text declares at its top, in its namespaces and in its classes."""
    found, blocks, head, parentheses = _Found(), list[_Block](), _Block(), 0
    for match in in_time(_READ.finditer(code)):
        if mark := match["mark"]:
            if mark == "{":
                head.parentheses = parentheses
                blocks.append(head)
                head, parentheses = _Block(), 0
            elif mark == "}" and blocks:
                parentheses = blocks.pop().parentheses
            elif mark in "()":
                parentheses = max(parentheses + (1 if mark == "(" else -1), 0)
            continue
        if parentheses:
            continue
        around = blocks[-1] if blocks else None
        name = match["name"] or match["member"] or ""
        if kind := match["kind"]:
            if around is None or around.kind in _OPEN:
                head = _Block(kind, name)
                _note(found, code, kind, name, match, around)
            continue
        if around is not None and around.kind in _WITH_MEMBERS and around.name and name:
            table = found.members.setdefault(around.name, {})
            table[name] = table.get(name) or _signature("", name, code, match.end("member"))
    return found


def _note(found: _Found, code: str, kind: str, name: str, match: re.Match[str], around: _Block | None) -> None:
    """Note a declaration at the top, or in a namespace, whose member it is."""
    if match["default"]:
        found.default = name or "default"
    if not name:
        return
    told = "" if kind in _WITH_MEMBERS else _signature(f"{kind} ", name, code, match.end("name"))
    table = found.members.setdefault(around.name, {}) if around is not None and around.name else found.names
    table[name] = table.get(name) or told
    if kind in _WITH_MEMBERS:
        found.kinds[name] = kind, table
        found.members.setdefault(name, {})


def _signature(before: str, name: str, code: str, end: int) -> str:
    """The signature of a function, or the type of a value."""
    optional = code.startswith("?", end)
    end += optional
    generic = _GENERIC.match(code, end)
    start = generic.end() if generic is not None else end
    last = closed(code, start)
    shown = f"{before}{name}{'?' if optional else ''}"
    if last == start:
        line = code[end : end + MAX_SIGNATURE].partition("\n")[0].partition(";")[0].strip()
        return f"{shown}{line}" if line.startswith(":") and len(line) < MAX_SIGNATURE // 2 else ""
    parts = list(split(code[start + 1 : last - 1]))
    returned = _TYPE.match(code, last)
    whole = f"{shown}({', '.join(parts)})" + (f": {' '.join(returned[1].split())}" if returned is not None else "")
    return cut(whole, f"{shown}({', '.join(part.partition(':')[0].strip() for part in parts)})")


def _typed(kind: str, name: str, members: dict[str, str]) -> str:
    """The signature of a class, by its constructor, or of an interface, by its members."""
    if kind == "class":
        made = members.get("constructor", "")
        return f"class {name}{made.removeprefix('constructor')}" if made else f"class {name}"
    told = (member or own for own, member in members.items())
    parts = first_of(told, MAX_SIGNATURE - len(kind) - len(name) - 10)
    return f"{kind} {name} {{ {'; '.join(parts)}{'' if len(parts) == len(members) else '; ...'} }}"
