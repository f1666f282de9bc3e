"""Expands a template for a match: adapts the indentation to the place, and keeps separators and comments correct."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lacuna_model.core.params import Region
from lacuna_model.text.lines import BYTE_LINE_END, LINE_END, indentation
from lacuna_server.refactor.places.matching import COUNTING, WHOLE, PatternMatch
from lacuna_server.refactor.places.pattern import VARIABLE
from lacuna_server.refactor.places.source import DEFAULT_UNIT, Source
from lacuna_server.refactor.rewriting.carried import (
    STATEMENT_END,
    Carried,
    carried,
    ended,
    whole,
    without_comments,
)
from lacuna_server.refactor.rewriting.fitting import Fitting, PieceSpan
from lacuna_server.refactor.rewriting.rewrite import (
    TOO_DEEP,
    LeftOut,
    MetaVariable,
    Part,
    Piece,
    Rewrite,
    Template,
    first_line,
)

LEADING_COMMA = re.compile(r"\s*,[ \t]*")
TRAILING_COMMA = re.compile(r",\s*$")
# Lines of a template that begin inside a string of it, each as a text part and its number in that.
KeptLines = frozenset[tuple[str, int]]


def rewrites(
    source: Source, matches: Sequence[PatternMatch], template: Template, label: str = "", *, replaced: bool = False
) -> Iterator[Rewrite | LeftOut]:
    """Yields one rewrite for each place. A match inside a captured piece of another one is rewritten as part of it.

    ``label`` describes a place to people: text with metavariables, by default the first line of the match. A place is
    left out where a comment, or a token that the pattern does not name, would be lost, or where the code in or around
    it would be read otherwise; not so one that is ``replaced``, or whose template is only a hole.
    """
    if template.text.startswith("\n"):
        matches = [_behind_comment(source, match) if match.start == match.end else match for match in matches]
    replaced = replaced or (len(template.parts) == 1 and isinstance(template.parts[0], Region))
    lines = _template_lines(template.parts, source)
    closes = template.text.rstrip().endswith("}")  # behind which a ``;`` may be a statement too many
    ordered: list[Carried] = []
    for match in matches:
        place = ended(source, match, template)
        item = whole(place, template) if replaced else carried(source, place, template, narrow=not lines[0])
        if isinstance(item, LeftOut):
            yield item
        else:
            ordered.append(item)
    ordered.sort(key=lambda item: (item.match.start, -item.match.end))
    fitting, end = Fitting(source), 0
    for index, item in enumerate(ordered):
        match = item.match
        if index and match.end <= end and match.start < end:
            continue
        end = match.end
        named = _labelled(label or f"${WHOLE}", match, source)
        text = _Text(source.newline)
        try:
            _Expansion(source, template, lines, text, item, _within(ordered, index)).write()
        except RecursionError:
            yield LeftOut(match.start, TOO_DEEP)
            continue
        rewrite = Rewrite(match.start, match.end, tuple(text.parts), named)
        one = rewrite if replaced else fitting.fitted(rewrite, text.pieces)
        if isinstance(one, LeftOut) and closes and (longer := STATEMENT_END.match(source.data, match.end)):
            other = fitting.fitted(replace(rewrite, end=longer.end()), text.pieces)
            one = other if isinstance(other, Rewrite) else one
        yield one


def _labelled(label: str, match: PatternMatch, source: Source) -> str:
    return VARIABLE.sub(lambda named: first_line(source.slice(*match.captures[named[2]])), label)


def _behind_comment(source: Source, match: PatternMatch) -> PatternMatch:
    at = source.behind_comment(match.start)
    return replace(match, start=at, end=at)


def _within(ordered: Sequence[Carried], index: int) -> Sequence[Carried]:
    """Returns the matches that begin within one of them; they follow it."""
    end = ordered[index].match.end
    return ordered[index + 1 : bisect_left(ordered, end, lo=index + 1, key=lambda item: item.match.start)]


def _template_lines(parts: Sequence[Piece], source: Source) -> tuple[KeptLines, str]:
    """Returns the lines of a template that keep their indentation, and one level of that of the others."""
    kept, leads = set[tuple[str, int]](), list[str]()
    texts = [part if isinstance(part, str) else "x" for part in parts]
    sample, at = Source("", "".join(texts), source.language), 0
    for text in texts:
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if number and sample.keeps_line(at):
                kept.add((text, number))
            elif number and (line.strip(" \t") or number == len(lines) - 1):
                leads.append(indentation(line, " \t"))
            at += len(line.encode()) + (number < len(lines) - 1)
    return frozenset(kept), min(filter(None, leads), key=len, default=DEFAULT_UNIT)


@dataclass
class _Text:
    """The text of a place, as far as it is written, and the pieces of the file in it, an inner one before an outer one.

    ``line_due`` is the indentation of the line that must follow, where the text ends in a comment.
    """

    newline: str
    parts: list[Part] = field(default_factory=list)
    pieces: list[PieceSpan] = field(default_factory=list)
    line_due: str | None = None

    def put(self, part: Part) -> None:
        """Appends a part, on a new line where a line comment precedes it."""
        bare = part.lstrip(" \t") if isinstance(part, str) else part
        if self.line_due is not None and bare != "":
            if not (isinstance(bare, str) and LINE_END.match(bare)):
                self.parts.append(self.newline + self.line_due)
                part = bare
            self.line_due = None
        if part != "":
            self.parts.append(part)

    def put_comment(self, comment: str, indent: str) -> None:
        """Appends a comment that ends its line; the next line is indented by ``indent``."""
        self.put(comment)
        self.line_due = indent


class _Expansion:
    """Expands one template for one match; ``inner`` are the later matches that begin inside this one.

    ``base`` is the indentation of the result, by default that of the place in the file; it differs where an enclosing
    place moves this one.
    """

    def __init__(
        self,
        source: Source,
        template: Template,
        lines: tuple[KeptLines, str],
        text: _Text,
        item: Carried,
        inner: Sequence[Carried],
        base: str | None = None,
    ) -> None:
        self._source, self._template, self._lines, self._text = source, template, lines, text
        self._kept, self._unit = lines
        if self._kept and item.parts != template.parts:  # an insertion, whose lines have other numbers
            self._kept, _ = _template_lines(item.parts, source)
        self._item, self._match, self._inner = item, item.match, inner
        self._from = source.indent_at(item.match.start)
        self._base = self._from if base is None else base
        self._lead = ""
        self._opens_line = True
        self._begun = len(text.parts)

    def write(self) -> None:
        """Appends the text and the holes of the place."""
        item = self._item
        self._stays(self._match.start, item.start)
        self._opens_line = self._match.start == item.start
        self._expand(item.parts)
        self._stays(item.end, self._match.end)
        if item.comment:
            self._text.put_comment(f"  {item.comment}", self._base + self._lead)

    def _stays(self, start: int, end: int) -> None:
        """Appends bytes of the place that pattern and template share, with the pieces in them."""
        opens_line, self._opens_line = self._opens_line, False  # the bytes keep their lines
        many = {part.name: part.many for part in self._template.parts if isinstance(part, MetaVariable)}
        pieces = sorted((span, name) for name, span in self._match.captures.items() if name in many)
        for (first, last), name in pieces:
            last = min(last, end)  # an insertion precedes the comments at the end of a piece
            if start <= first < last:
                self._file(start, first)
                begun = len(self._text.parts)
                self._file(first, last)
                self._text.pieces.append(PieceSpan(begun, len(self._text.parts), first, last, many[name]))
                start = last
        self._file(start, end)
        self._opens_line = opens_line

    def _expand(self, parts: Sequence[Piece]) -> None:
        skip_comma = False
        for index, part in enumerate(parts):
            if isinstance(part, str):
                self._literal(part, skip_comma=skip_comma)
                skip_comma = False
                continue
            if isinstance(part, Region):
                self._text.put(part)
            else:
                following = parts[index + 1 : index + 2]
                behind = following[0] if following and isinstance(following[0], str) else ""
                skip_comma = self._variable(part, behind)
            self._opens_line = False

    def _literal(self, text: str, *, skip_comma: bool) -> None:
        lines = (LEADING_COMMA.sub("", text, count=1) if skip_comma else text).split("\n")
        first_number = text.count("\n") + 1 - len(lines)
        out = lines[0]
        for number, line in enumerate(lines[1:], start=1):
            out += self._source.newline
            bare = line.lstrip(" \t")
            if (text, first_number + number) in self._kept:
                out += line
            elif bare or number == len(lines) - 1:
                lead = line[: len(line) - len(bare)]
                depth, rest = divmod(len(lead), len(self._unit))
                self._lead = self._source.indent_unit * depth + lead[len(lead) - rest :]
                out += self._base + self._lead + bare
        self._opens_line = not lines[-1].strip() and (len(lines) > 1 or self._opens_line)
        self._text.put(out)

    def _variable(self, variable: MetaVariable, behind: str) -> bool:
        """Appends a captured piece. Returns whether a comma of the template ``behind`` it has to be skipped."""
        start, end = self._match.captures.get(variable.name, (self._match.start, self._match.start))
        start = self._in_front(start, end)
        begun = len(self._text.parts)
        if variable.many:
            skip_comma = self._nodes(start, end, behind)
        else:
            skip_comma = False
            self._file(start, end)
        if begun < len(self._text.parts):
            self._text.pieces.append(PieceSpan(begun, len(self._text.parts), start, end, variable.many))
        return skip_comma

    def _in_front(self, start: int, end: int) -> int:
        """Appends the comment that a piece begins with behind code on a line of its own, if it ends its line.

        Returns the byte offset at which the rest of the piece begins.
        """
        first = self._source.comment_at(start)
        if self._opens_line and first and self._source.lead(start).strip() and not self._source.rest(first[1]).strip():
            self._text.put_comment(self._source.slice(*first), self._base + self._lead)
            return end - len(self._source.data[first[1] : end].lstrip())
        return start

    def _nodes(self, start: int, end: int, behind: str) -> bool:
        """Appends any number of nodes with their separators. Returns whether the comma after them has to be skipped.

        Without a line break ``behind`` them that breaks the line, they have no comma that belongs to one.
        """
        source, text = self._source, self._text
        comma, breaks = bool(LEADING_COMMA.match(behind)), behind.lstrip(" \t").startswith("\n")
        body_end, tail_start = without_comments(source, start, end)
        empty, comments = body_end == start, source.slice(tail_start, end)
        if empty and not comma and len(text.parts) > self._begun and isinstance(text.parts[-1], str):
            text.parts[-1] = TRAILING_COMMA.sub("", text.parts[-1])
        node = source.tree.root_node.descendant_for_byte_range(start, end)
        counts = node is not None and node.type in COUNTING  # else a comma before the line end may go
        without = comma or not (breaks or comments or counts or source.rest(end).strip())
        self._file(start, body_end if without else tail_start)
        if comments:
            text.put("," if comma and not empty else "")
            if (last := source.comment_at(end - 1)) and source.is_line_comment(last):
                text.put_comment(comments, source.indent_at(end - 1))
            else:
                text.put(self._moved(tail_start, end, self._from, self._base + self._lead) + " " * comma)
        return comma and (empty or bool(comments))

    def _file(self, start: int, end: int) -> None:
        """Appends bytes of the file, adapted to their new indentation and with inner matches rewritten."""
        alone = self._opens_line and not self._source.lead(start).strip()
        old = self._source.indent_at(start) if alone else self._from
        new = self._base + self._lead
        position = start
        for index, item in enumerate(self._inner):
            match = item.match
            if position <= match.start and match.end <= end and match.start < match.end:
                self._text.put(self._moved(position, match.start, old, new))
                indent = self._source.indent_at(match.start)
                base = new + indent.removeprefix(old) if indent.startswith(old) else indent
                begun, inner = len(self._text.parts), _within(self._inner, index)
                _Expansion(self._source, self._template, self._lines, self._text, item, inner, base).write()
                self._text.pieces.append(PieceSpan(begun, len(self._text.parts), match.start, match.end, many=True))
                if self._text.line_due is not None:
                    self._text.line_due = new
                position = match.end
        self._text.put(self._moved(position, end, old, new))

    def _moved(self, start: int, end: int, old: str, new: str) -> str:
        """Returns bytes of the file with the indentation ``old`` of their lines replaced, except inside strings."""
        if old == new:
            return self._source.slice(start, end)
        out, position = "", start
        for found in BYTE_LINE_END.finditer(self._source.data, start, end):
            line = found.end()
            out += self._source.slice(position, line)
            position = line
            if not self._source.keeps_line(line) and self._source.data.startswith(old.encode(), line, end):
                position = line + len(old.encode())
                out += new
        return out + self._source.slice(position, end)
