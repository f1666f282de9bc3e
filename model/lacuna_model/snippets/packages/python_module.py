"""Reads the names of a Python module from its stub or source, line by line.

A regular expression reads a megabyte of stubs in a few hundredths of a second. The guarded parse of a text that nobody
vouches for takes two seconds (torch's ``_VariableFunctions.pyi``), and jedi 5 s and 320 MB for the names of torch.
"""

import re
from collections.abc import Iterator

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

# Comments and texts of several lines; other strings are kept, since signatures have them.
_TEXTS = re.compile(
    r"(?P<gone>\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z)|#[^\n]*)"
    r"|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?",
    re.DOTALL,
)
_LINE = re.compile(
    rf"^([ \t]*)(?:(?:async[ \t]+)?(def|class)[ \t]+(\w{{1,{MAX_NAME}}})\b"
    rf"|([^\W\d]\w{{0,{MAX_NAME - 1}}})[ \t]*(?=[:=](?!=)))",
    re.MULTILINE,
)
_ANNOTATION = re.compile(r"\s*:[^=]*?(?=\s*=|$)", re.DOTALL)
_RETURNED = re.compile(r"\s*->\s*([^:\n]{1,60}):")
_DYNAMIC = re.compile(r"\bglobals\(\)|^def __getattr__\b|\bsys\.modules\[", re.MULTILINE)
_KEYWORDS = ("else", "try", "finally", "except", "lambda")
_CONSTRUCTORS = ("__init__", "__new__")


def read(text: str) -> ModuleNames:
    """The names of the module with this text."""
    code = _TEXTS.sub(lambda match: "" if match["gone"] else match[0], text)
    names, members, bases = dict[str, str](), dict[str, dict[str, str]](), dict[str, tuple[str, ...]]()
    for owner, name, signature, extends in _definitions(code):
        table = members.setdefault(owner, {}) if owner else names
        if not table.get(name):
            table[name] = signature
        if extends is not None:
            members.setdefault(name, {})
            bases[name] = extends
    for name in bases:
        names[name] = _class(name, bases[name], members[name])
    return ModuleNames.of(code, "python", names, members, is_open=bool(_DYNAMIC.search(code)))


def _definitions(code: str) -> Iterator[tuple[str, str, str, tuple[str, ...] | None]]:
    """The class that a definition is in, its name and signature and, of a class of the module, what it extends."""
    around: list[tuple[int, str]] = []  # the indentation of each definition around a line, and the class that it is
    for match in in_time(_LINE.finditer(code)):
        indent, kind, defined, value = match.groups()
        while around and around[-1][0] >= len(indent):
            around.pop()
        owner = around[-1][1] if around else ""
        is_outer = not around
        if not is_outer and (not owner or len(around) > 1):  # in a function, or in a class of a class
            if kind:
                around.append((len(indent), ""))
            continue
        if kind:
            around.append((len(indent), defined if kind == "class" and is_outer else ""))
            end = closed(code, match.end())
            if kind == "def":
                yield owner, defined, _function(defined, code[match.end() : end], code[end : end + 80], owner), None
            else:
                inner = code[match.end() : end].strip()
                yield owner, defined, "", _bases(inner[1:-1] if inner.startswith("(") else "") if is_outer else None
        elif value not in _KEYWORDS:
            line = code[match.start() : match.start() + MAX_SIGNATURE].partition("\n")[0].strip()
            yield owner, value, line if line[len(value) :].lstrip().startswith(":") else "", None


def _function(name: str, parameters: str, behind: str, owner: str) -> str:
    """The signature of a function: without annotations where it would be long with them."""
    if not parameters:  # they are too many
        return f"def {name}(...)"
    parts = list(split(parameters[1:-1]))
    if owner and parts and parts[0].partition(":")[0].strip() in ("self", "cls", "mcs"):
        parts = parts[1:]
    returned = _RETURNED.match(behind)
    whole = f"def {name}({', '.join(parts)})" + (f" -> {returned[1].strip()}" if returned else "")
    return cut(whole, f"def {name}({', '.join(_ANNOTATION.sub('', part, count=1) for part in parts)})")


def _bases(inner: str) -> tuple[str, ...]:
    return tuple(base.partition("[")[0] for base in split(inner) if "=" not in base)[:8]


def _class(name: str, bases: tuple[str, ...], members: dict[str, str]) -> str:
    """The signature of a class: how it is made, by its constructor or by its fields."""
    if made := next((members[one] for one in _CONSTRUCTORS if members.get(one)), ""):
        return cut(f"class {name}({made.partition('(')[2].rpartition(')')[0]})")
    fields = [one for one in members.values() if one and not one.startswith(("def ", "_"))]
    inner = first_of(fields, MAX_SIGNATURE - len(name) - 8)
    return cut(f"class {name}({', '.join(inner or bases)})")
