"""A document with gaps: checks whether fills add an error, incrementally and finally with a fresh parse.

What reads a file in the end, CPython's compiler or a strict parser of data, rejects more than a grammar does: a
``return`` outside of a function, a table twice in TOML, two documents in JSON. A document that it refuses with every
neutral text in its gaps is left to the grammar: it may be in a laxer dialect, or newer than this interpreter. In one of
Python an error at the gap's lines still counts, unless something looks newer than the interpreter.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import islice, product

import yaml
from tree_sitter import Node, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import Language, StrictParser, StrictParsers
from lacuna_model.languages.parsing import UnparsableError, edited
from lacuna_model.languages.python import COMPILED_NS, compiled
from lacuna_model.syntax.faults import (
    Fault,
    FilledTree,
    Original,
    Splice,
    all_faults,
    carried_over,
    indentation_faults,
    lines_of,
    tree_faults,
)
from lacuna_model.syntax.placement import placement_in, strings_around, torn
from lacuna_model.text.lines import indentation, splice

# The most progress reports of a parse: a multiple of those of the original's parse, or in proportion to the text.
EFFORT_FACTOR = 1.5
EFFORT_LEAST = 10
BYTES_PER_REPORT = 150
LARGEST = 200_000  # bytes; a larger file takes the compiler more than ten milliseconds, a parser more than 100
MOST_COMPILED = 400_000  # bytes, to find out whether the compiler reads a document
_PLACE = re.compile(r"at line (\d+), column (\d+)")
CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")

Spans = Sequence[tuple[int, int]]


class Document:
    """A text with gaps (ordered, disjoint byte ranges) in a ``language``.

    Errors apart from its gaps may stay, unless it is ``strict``. If every fill is ``in_line``, it stays in the string
    around its gap.
    """

    def __init__(
        self, text: bytes, gaps: Spans, language: Language, *, in_line: bool = False, strict: bool = False
    ) -> None:
        self._text, self._gaps, self.language, self._in_line = text, tuple(gaps), language, in_line
        self._parser = language.parser()
        self.strict = strict
        self._placement = placement_in(language)
        self._parsers = Strict(text, gaps, language.strict) if language.strict is not None else None
        self.original = Original(text, gaps, language)
        self._base = tuple(text[start:end] for start, end in gaps)  # the last valid fills, and their tree
        self._base_tree: Tree | None = None

    def assemble(self, fills: Sequence[bytes]) -> bytes:
        """The document with its gaps filled."""
        return splice(self._text, [(*gap, fill) for gap, fill in zip(self._gaps, fills, strict=True)])

    def spans(self, fills: Sequence[bytes]) -> list[tuple[int, int]]:
        """The byte range of each fill in the assembled document."""
        spans, shift = [], 0
        for (start, end), fill in zip(self._gaps, fills, strict=True):
            spans.append((start + shift, start + shift + len(fill)))
            shift += len(fill) - (end - start)
        return spans

    def check(self, fills: Sequence[bytes]) -> frozenset[Fault]:
        """The errors that fills add, by a parse that starts from the last valid ones and is bounded in effort."""
        text = self.assemble(fills)
        # error recovery depends on the tree that is reused
        is_sound = self._base_tree is None or not self._base_tree.root_node.has_error
        tree = self._parsed(text, self._edited(fills) if is_sound else None, self._most_effort)
        if tree is None and is_sound:  # to reuse a tree full of errors can cost more than it saves
            tree = self._parsed(text, None, self._most_effort)
        faults = self._faults(tree, text, fills, soon=True)
        if not faults:
            self._base, self._base_tree = tuple(fills), tree
        return faults

    def check_fresh(self, fills: Sequence[bytes]) -> frozenset[Fault]:
        """The errors that fills add, by a fresh, unbounded parse."""
        text = self.assemble(fills)
        return self._faults(self._parsed(text, None, math.inf), text, fills, soon=False)

    def _parsed(self, text: bytes, reused: Tree | None, most: float) -> Tree | None:
        """The tree of the text with some fills; None if the parse takes more than ``most`` effort or does not end.

        Raises UnparsableError if that is so whatever the fills are.
        """
        try:
            return self._parser.counted(text, reused, most)[0]
        except UnparsableError:
            _ = self.original.unfilled.tree  # raises it, too, if the fills are not to blame
            return None

    @property
    def _most_effort(self) -> float:
        return EFFORT_LEAST + max(EFFORT_FACTOR * self.original.reports, len(self._text) / BYTES_PER_REPORT)

    def _edited(self, fills: Sequence[bytes]) -> Tree:
        """The base tree, edited as if the fills were in its gaps."""
        tree, text = self._base_tree or self.original.unfilled.tree, self.assemble(fills)
        for (start, _), old, new in zip(self.spans(fills), self._base, fills, strict=True):
            tree = edited(tree, text[:start], old, new) if old != new else tree
        return tree

    def _faults(self, tree: Tree | None, text: bytes, fills: Sequence[bytes], *, soon: bool) -> frozenset[Fault]:
        """The errors of the first kind that a text with fills has and that may not stay; one without a tree has one."""
        spans = self.spans(fills)
        if tree is None:
            return frozenset(Fault("ENDLESS", *span) for span in spans)
        if faults := self._unknown(tree_faults(tree), fills):
            return faults
        beside = [(start, next_code_line(text, end)) for start, end in spans]
        near = beside + [(one.start_byte, one.end_byte) for one in self._edited(fills).changed_ranges(tree)]
        if self.language.lexicon.columns and (faults := self._unknown(indentation_faults(tree, text, near), fills)):
            return faults
        filled = FilledTree(tree, text, spans)
        if self._placement is not None:
            places: Spans | None = near if self._base_tree is not None else None
            if tree.root_node.has_error:  # what errors are nearby is misplaced
                places, beside = spans, spans
            faults = self._placement.faults(filled, self.original, places, beside)
        if not faults and self._in_line:
            faults = frozenset(torn(filled, self.original.unfilled, self._strings))
        if not faults and self._parsers is not None:
            faults = self._parsers.faults(text, beside, soon=soon)
        return faults

    def _unknown(self, faults: frozenset[Fault], fills: Sequence[bytes]) -> frozenset[Fault]:
        """The faults that the text does not have apart from its gaps, and those at a fill, which is then to blame."""
        if not faults or self.strict:
            return faults
        splices = [Splice(*gap, len(fill)) for gap, fill in zip(self._gaps, fills, strict=True)]
        near = [(start - 1, end + 1) for start, end in self.spans(fills)]
        return faults - frozenset(
            fault
            for fault in carried_over(self.original.apart, splices)
            if not any(start <= place <= end for start, end in near for place in (fault.start, fault.end))
        )

    @cached_property
    def _strings(self) -> Sequence[Node | None]:
        return strings_around(self.original.unfilled)


def next_code_line(text: bytes, position: int) -> int:
    """The end of the first line after the position's own that is neither blank nor a comment."""
    found = CODE_LINE.search(text, position)
    return len(text) if found is None else found.end()


def parses(text: bytes, language: Language) -> bool:
    """Whether a whole text has no syntax error, indentation included."""
    return not all_faults(language.parser().parse(text), text, language)


def python_compiles(text: bytes) -> bool:
    """Whether CPython compiles a text; one that is too large or too deep to compile counts as valid."""
    return len(text) > LARGEST or _refusal(compiled, text, COMPILED_NS) is None


COMPILES: dict[str, Callable[[bytes], bool]] = {"python": python_compiles}


class Strict:
    """Asks the strict parsers of a language for the errors of a document with gaps (byte ranges of its text)."""

    def __init__(self, text: bytes, gaps: Spans, own: StrictParsers) -> None:
        self._text, self._gaps = text, gaps
        self._own, self._parsers = own, own.parsers
        self._taken: StrictParser | None = None
        self._refused = lru_cache(maxsize=4)(_refusal)  # a fill is checked again at the end

    def faults(self, text: bytes, beside: Spans, *, soon: bool) -> frozenset[Fault]:
        """Return the parser's error in the filled document, whose fills are in the lines of the ranges ``beside``.

        None with ``soon`` in one above the language's size limit for that.
        """
        newer = self._own.newer
        if len(text) > (self._own.soon if soon else LARGEST) or (newer is None and text == self._text):
            return frozenset()
        place = self._refused(self._parsers[0], text, self._own.byte_ns)
        if place is None:
            self._taken = self._parsers[0] if newer is None else None  # of Python, a mere guess may compile
            return frozenset()
        near = any(text.rfind(b"\n", 0, start) < place <= stop for start, stop in beside)
        if newer is None or not near or newer.search(self._text):
            parser = self._taken or self._strictest
            place = self._refused(parser, text, self._own.byte_ns) if parser is not None else None
        return frozenset({Fault("SYNTAX", place, place)}) if place is not None else frozenset()

    @cached_property
    def _strictest(self) -> StrictParser | None:
        """The strictest parser that accepts the document with neutral text in its gaps; None without one.

        Asked once, so the proof that asks first does not pay for it.
        """
        since, lines = work.spent(), dict.fromkeys(lines_of(self._text, *gap) for gap in self._gaps)
        edits = [[(*gap, fill.encode()) for gap in self._gaps] for fill in self._own.neutral]
        for line in self._own.lines:
            edits.append([(*one, indentation(self._text[slice(*one)], b" \t") + line.encode()) for one in lines])
        most = MOST_COMPILED // max(len(self._text), 1) + 1 if self._own.lines else None
        texts = islice(dict.fromkeys([self._text, *(splice(self._text, one) for one in edits)]), most)
        tried = product(self._parsers, texts)
        found = next((parser for parser, text in tried if _refusal(parser, text, self._own.byte_ns) is None), None)
        work.spend(since - work.spent())
        return found


def _refusal(parser: StrictParser, text: bytes, byte_ns: int) -> int | None:
    """The offset of a parser's error; None if it accepts the text, or cannot decide."""
    work.spend(len(text) * byte_ns)
    work.check()
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.start
    try:
        parser(decoded)
    except (RecursionError, MemoryError):  # nesting beyond the parser's own limits
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return len(text) - len(decoded[mark.index :].encode()) if mark is not None else len(text)
    except json.JSONDecodeError as error:
        return len(text) - len(decoded[error.pos :].encode())
    except SyntaxError as error:
        return _offset(text, error.lineno or 1, 1)
    except (ValueError, yaml.YAMLError) as error:
        named = _PLACE.search(str(error))
        return _offset(text, int(named[1]), int(named[2])) if named is not None else len(text)
    return None


def _offset(text: bytes, line: int, column: int) -> int:
    above = text.split(b"\n")[: line - 1]
    return min(sum(len(one) + 1 for one in above) + column - 1, len(text))
