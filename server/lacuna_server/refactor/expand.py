"""A template put in place of a match: indentation follows the place, separators and comments stay where they belong."""

import re
from collections.abc import Sequence
from functools import cached_property

from lacuna_model.params import Region
from lacuna_server.refactor.matching import VARIABLE, Span
from lacuna_server.refactor.rewrite import Part, Rewrite, first_line
from lacuna_server.refactor.select import WHOLE, Match
from lacuna_server.refactor.source import DEFAULT_UNIT, Source
from lacuna_server.refactor.template import Template, Variable

LINE_INDENT = re.compile(r"\n([ \t]++)(?!\n)")
LEADING_COMMA = re.compile(r"\s*,[ \t]*")
TRAILING_COMMA = re.compile(r",\s*$")


def rewrites(source: Source, matches: Sequence[Match], template: Template, label: str = "") -> list[Rewrite]:
    """One rewrite a place; a match inside another one's captured piece is rewritten there, as part of that place.

    ``label`` is what a person reads for a place: text with metavariables, by default the beginning of what is there.
    """
    ordered = sorted(matches, key=lambda match: (match.start, -match.end))
    outer: list[Rewrite] = []
    for index, match in enumerate(ordered):
        if outer and match.end <= outer[-1].end and match.start < outer[-1].end:
            continue
        parts = _Expansion(source, template, match, ordered[index + 1 :]).parts()
        outer.append(Rewrite(match.start, match.end, parts, _labelled(label or f"${WHOLE}", match, source)))
    return outer


def _labelled(label: str, match: Match, source: Source) -> str:
    return VARIABLE.sub(lambda named: first_line(source.slice(*match.captures[named[2]])), label)


class _Expansion:
    """One match under one template; ``inner`` are the matches behind it, some of which may lie within it."""

    def __init__(self, source: Source, template: Template, match: Match, inner: Sequence[Match]) -> None:
        self._source, self._template, self._match, self._inner = source, template, match, inner
        self._base = source.indent_at(match.start)
        self._lead = ""
        self._opens_line = True
        self._parts: list[Part] = []

    def parts(self) -> tuple[Part, ...]:
        """The text and the holes of the place."""
        start, end = self._match.captures.get(self._template.behind, (0, 0))
        if start < end:
            at = self._without_comments(start, end)[0]
            self._piece(self._match.start, at)
            self._expand(self._template.inserted)
            self._piece(at, self._match.end)
        else:
            self._expand(self._template.parts)
        return tuple(part for part in self._parts if part != "")

    def _expand(self, parts: Sequence[str | Variable | Region]) -> None:
        skip_comma = False
        for index, part in enumerate(parts):
            if isinstance(part, str):
                self._literal(LEADING_COMMA.sub("", part, count=1) if skip_comma else part)
                skip_comma = False
            elif isinstance(part, Variable):
                following = parts[index + 1 : index + 2]
                comma = bool(following) and isinstance(following[0], str) and LEADING_COMMA.match(following[0])
                skip_comma = self._variable(part, comma=bool(comma))
                self._opens_line = False
            else:
                self._parts.append(part)
                self._opens_line = False

    def _literal(self, text: str) -> None:
        lines = text.split("\n")
        out = lines[0]
        for number, line in enumerate(lines[1:], start=1):
            bare = line.lstrip(" \t")
            if not bare and number < len(lines) - 1:
                out += self._source.newline
                continue
            self._lead = self._in_units(line[: len(line) - len(bare)])
            out += self._source.newline + self._base + self._lead + bare
        self._opens_line = not lines[-1].strip() and (len(lines) > 1 or self._opens_line)
        self._parts.append(out)

    def _in_units(self, lead: str) -> str:
        """A line's indentation in the template as the file would have it."""
        unit = self._template_unit
        return self._source.indent_unit * (len(lead) // len(unit)) + lead[len(lead) - len(lead) % len(unit) :]

    @cached_property
    def _template_unit(self) -> str:
        text = "".join(part for part in self._template.parts if isinstance(part, str))
        return min(LINE_INDENT.findall(text), key=len, default=DEFAULT_UNIT)

    def _variable(self, variable: Variable, *, comma: bool) -> bool:
        """Puts a captured piece there; says whether the comma behind it in the template has been taken care of."""
        start, end = self._match.captures.get(variable.name, (self._match.start, self._match.start))
        if not variable.many:
            self._piece(start, end)
            return False
        body_end, tail_start = self._without_comments(start, end)
        empty, comments = body_end == start, self._source.slice(tail_start, end)
        if empty and not comma and self._parts and isinstance(self._parts[-1], str):
            self._parts[-1] = TRAILING_COMMA.sub("", self._parts[-1])
        self._piece(start, body_end if comma else tail_start)
        if comments:  # they end with their line, so what follows begins a new one
            self._parts.append("," if comma and not empty else "")
            self._parts.append(comments + self._source.newline + self._source.indent_at(end - 1))
        return comma and (empty or bool(comments))

    def _without_comments(self, start: int, end: int) -> Span:
        """Where the last node of a piece ends, and where the comments behind it and its trailing comma begin."""
        data, tail = self._source.data, end
        while True:
            last = start + len(data[start:tail].rstrip())
            node = self._source.tree.root_node.descendant_for_byte_range(max(start, last - 1), last)
            if last == start or node is None or "comment" not in node.type:
                break
            tail = max(start, node.start_byte)
        body = start + len(data[start:last].removesuffix(b",").rstrip())
        return body, last

    def _piece(self, start: int, end: int) -> None:
        """The bytes of the file, moved to the indentation of their new line, inner matches rewritten."""
        alone = self._opens_line and not self._source.lead(start).strip()
        old = self._source.indent_at(start) if alone else self._base
        new = self._base + self._lead
        position = start
        for index, match in enumerate(self._inner):
            if position <= match.start and match.end <= end and match.start < match.end:
                self._parts.append(self._moved(position, match.start, old, new))
                nested = _Expansion(self._source, self._template, match, self._inner[index + 1 :]).parts()
                self._parts += [_replace_indent(part, old, new) if isinstance(part, str) else part for part in nested]
                position = match.end
        self._parts.append(self._moved(position, end, old, new))

    def _moved(self, start: int, end: int, old: str, new: str) -> str:
        if old == new:
            return self._source.slice(start, end)
        out, position = "", start
        for found in re.finditer(rb"\n", self._source.data[start:end]):
            line = start + found.end()
            out += self._source.slice(position, line)
            position = line
            if not self._source.in_string(line) and self._source.data[line:end].startswith(old.encode()):
                position = line + len(old.encode())
                out += new
        return out + self._source.slice(position, end)


def _replace_indent(text: str, old: str, new: str) -> str:
    return text.replace("\n" + old, "\n" + new)
