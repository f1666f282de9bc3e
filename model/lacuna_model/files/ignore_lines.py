"""Compiles lines of ignore files, by git's rules, to patterns that take time linear in the length of a path.

Of a literal between two stars only the first place is tried: any later place is equivalent while another star follows.
The same holds for the folders between two ``**``.
"""

import re
from dataclasses import dataclass

_STAR, _SLASH = "any characters", "/"
_NEVER = "(?!)"
_ANY_FOLDERS = r"(?:[^/]++/)*?"
# The classes of POSIX, as git knows them, in ASCII.
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\s", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class IgnoreLine:
    """A line: ``ignored`` tells whether it ignores what it names, or keeps it.

    It names a path inside the folder of the ignore file if ``anchored``, else a name at any depth; only folders if
    ``folders``. ``text`` is that path or name if ``literal``, else a regular expression that matches it.
    """

    ignored: bool
    anchored: bool
    folders: bool
    literal: bool
    text: str


def compiled(line: str) -> IgnoreLine | None:
    """Return a line in compiled form; None for a comment, an empty line and one that git takes for no pattern."""
    line = _without_blanks(line)
    if not line or line.startswith("#"):
        return None
    ignored = not line.startswith("!")
    path = line if ignored else line[1:]
    folders = path.endswith(_SLASH)
    path = path.removesuffix(_SLASH)
    anchored = _SLASH in path  # within a bracket, too
    tokens = _tokens(path.removeprefix(_SLASH))
    if not tokens:
        return None
    literal = all(len(token) == 1 for token in tokens)
    return IgnoreLine(ignored, anchored, folders, literal, "".join(tokens) if literal else _path(tokens))


def _without_blanks(line: str) -> str:
    """Return a line without the blanks at its end, except one that a backslash precedes."""
    bare = line.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2
    return line[: len(bare) + 1] if escaped else bare


def _tokens(line: str) -> list[str] | None:
    """Split a line into tokens; None if it is no pattern.

    A token is one character that stands for itself (a slash too), ``_STAR``, or a regular expression of several
    characters that matches one.
    """
    found: list[str] = []
    at = 0
    while at < len(line):
        character = line[at]
        at += 1
        if character == "[":
            bracket = _bracket(line, at)
            if bracket is None:
                return None
            token, at = bracket
            found.append(token)
        elif character == "\\":
            if at == len(line):
                return None
            found.append(line[at])
            at += 1
        else:
            found.append({"?": "[^/]", "*": _STAR}.get(character, character))
    return found


def _bracket(line: str, at: int) -> tuple[str, int] | None:
    """Return the expression of a bracket whose inner part begins at an offset, and its end; None if it does not end."""
    negated = line[at : at + 1] in ("!", "^")
    begin = inner = at + negated
    parts: list[str] = []
    while inner == begin or line[inner : inner + 1] != "]":
        if line.startswith("[:", inner):
            name, closed, _ = line[inner + 2 :].partition(":]")
            if not closed or name not in _CLASSES:
                return None
            parts.append(_CLASSES[name])
            inner += len(name) + 4
            continue
        start, inner = _member(line, inner)
        end = start
        if line[inner : inner + 1] == "-" and line[inner + 1 : inner + 2] not in ("]", ""):
            end, inner = _member(line, inner + 1)
        if not start or not end:
            return None
        if start <= end:
            parts.append(f"{re.escape(start)}-{re.escape(end)}")
    if not parts:
        return ("[^/]" if negated else _NEVER), inner + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(parts)}]", inner + 1


def _member(line: str, at: int) -> tuple[str, int]:
    """Return a character of a bracket, "" at the end of the line, and the offset behind it."""
    at += line[at : at + 1] == "\\"
    return line[at : at + 1], at + 1


def _path(tokens: list[str]) -> str:
    """Return the regular expression of a path: runs of names, with any folders between them."""
    names = _split(tokens, _SLASH)
    if [] in names:
        return _NEVER
    runs: list[list[str]] = [[]]
    for own in names:
        if len(own) > 1 and set(own) == {_STAR}:
            runs.append([])
        else:
            runs[-1].append(_name(own))
    first, *others = ["/".join(run) for run in runs]
    if not others:
        return first
    head = f"{first}/" if first else ""
    inner = "".join(f"(?>{_ANY_FOLDERS}{part}/)" for part in others[:-1] if part)
    return f"{head}{inner}{_ANY_FOLDERS + others[-1] if others[-1] else '.+'}"


def _name(tokens: list[str]) -> str:
    """Return the regular expression of one name."""
    first, *others = ["".join(re.escape(one) if len(one) == 1 else one for one in own) for own in _split(tokens, _STAR)]
    if not others:
        return first
    inner = "".join(f"(?>[^/]*?{part})" for part in others[:-1] if part)
    return f"{first}{inner}[^/]*{others[-1]}"


def _split(tokens: list[str], at: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for token in tokens:
        if token == at:
            found.append([])
        else:
            found[-1].append(token)
    return found
