"""CPython's compiler, which knows more of Python than its grammar: where ``return`` may stand, what may be assigned.

It is asked where the tree has no error. Errors that the document has with neutral fills, too, are not the fills'. A
document that is newer than this interpreter is rewritten in older syntax first.
"""

import ast
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from tree_sitter import Node

from lacuna_model.core import work
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.languages.registry import language_for
from lacuna_model.syntax.check.error_set import Fault
from lacuna_model.text.lines import splice

Gaps = Sequence[tuple[int, int]]
CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")
LARGEST = 200_000  # bytes; a larger file takes the compiler more than ten milliseconds
BYTE_NS = 270  # of work, to compile
MAX_SECONDS = 0.1  # of work, to find out what the compiler makes of a document
# Neutral fills: the first end the gap's line, the second replace it and include headers and clauses.
ENDS = (b"", b"x", b"pass", b"x: pass", b"x:", b":", b" x", b" x:", b"x)", b"x):", b"x]", b"x}", b'"')
LINES = (b"pass", b"if x:", b"try:", b"except:", b"except: pass", b"finally: pass", b"else:", b"case _:", b"x,")
NEWEST = (3, 14)  # an interpreter from this version on needs no rewriting
HINTS = re.compile(
    rb"\btype[ \t]+\w|\b(?:def|class)[ \t]+\w+[ \t]*\[|\bexcept\b[^:\n(]*,|\b(?:[fFtT][rR]?|[rR][fFtT])[\"']"
)
# The most strings in each other of a text that is rewritten: one more at most doubles the work.
MAX_NESTED = 6
BOUNDS = frozenset({"class_definition", "function_definition"})
# CPython 3.11 counts the depth of syntax trees for all threads together (github.com/python/cpython/issues/106905), and
# a change of the filter of warnings holds for all threads.
_ONE_AT_A_TIME = threading.Lock()


class Compiler:
    """Finds the errors that fills add to a document with gaps."""

    def __init__(self, text: bytes, gaps: Gaps) -> None:
        self._text, self._gaps = text, gaps

    def faults(self, text: bytes, spans: Gaps, *, errors_stay: bool = False) -> frozenset[Fault]:
        """The error of the document with fills (the byte ranges ``spans`` of its ``text``).

        An error counts if it is at a fill, or on a line where the document has none with neutral fills. Unless
        ``errors_stay`` around the gaps, it also counts on the next line of code.
        """
        line = self._line_of_error(text)
        if line is None:
            return frozenset()
        for start, end in spans:
            last = end if errors_stay else next_code_line(text, end)
            if text.count(b"\n", 0, start) < line <= text.count(b"\n", 0, last) + 1:
                return frozenset({Fault("SYNTAX", start, end)})
        before = [span for span in spans if text.count(b"\n", 0, span[0]) < line]
        known = line - sum(text.count(b"\n", *span) for span in before) in self._neutral_lines
        return frozenset() if known else frozenset({Fault("SYNTAX", *(before or spans)[-1])})

    def _line_of_error(self, text: bytes) -> int | None:
        """The line of CPython's error in the document with some fills; None without one."""
        line = _line_of_error(text)
        older = without_newer(text) if line is not None and self._is_newer else None
        return line if older is None else _line_of_error(older)

    @cached_property
    def _is_newer(self) -> bool:
        """Whether the document is in newer syntax than this interpreter's, with nothing or a name in its gaps."""
        since = work.spent()
        found = any(without_newer(text) is not None for text in islice(_neutral(self._text, self._gaps), 2))
        work.spend(since - work.spent())  # asked once, so the proof that asks first does not pay for it
        return found

    @cached_property
    def _neutral_lines(self) -> frozenset[int]:
        """The lines of the errors with neutral fills, as far as the budget goes; none if one of them gives no error."""
        since = work.spent()
        until, lines = work.mark(MAX_SECONDS), set[int]()
        for filled in _neutral(self._text, self._gaps):
            line = self._line_of_error(filled)
            if line is None:
                lines.clear()
                break
            lines.add(line)
            if work.reached(until):
                break
        work.spend(since - work.spent())  # as above
        return frozenset(lines)


def _neutral(text: bytes, gaps: Gaps) -> Iterator[bytes]:
    """The text with each neutral fill in its gaps, then with each neutral line in place of the gaps' lines."""
    bounds = [0, *(offset for gap in gaps for offset in gap), len(text)]
    pieces = [text[begin:stop] for begin, stop in zip(bounds[::2], bounds[1::2], strict=True)]
    for end in ENDS:
        yield end.join(pieces)
    bare = [pieces[0], *(piece[max(piece.find(b"\n"), 0) :] for piece in pieces[1:])]
    heads = [piece[: len(piece) - len(piece.rpartition(b"\n")[2].lstrip())] for piece in bare[:-1]]
    for line in LINES:
        yield line.join([*heads, bare[-1]])


def python_compiles(text: bytes) -> bool:
    """Whether CPython compiles a text; a text that is too large to compile counts as valid."""
    return _line_of_error(text) is None


def next_code_line(text: bytes, position: int) -> int:
    """The end of the first line after the position's own that is neither blank nor a comment."""
    found = CODE_LINE.search(text, position)
    return len(text) if found is None else found.end()


@work.cached(maxsize=4)  # a fill is checked again at the end
def _line_of_error(text: bytes) -> int | None:
    """The line (from 1) of CPython's error in a text; None in one that is too large to compile, or nested too deeply.

    The error itself would be kept with its traceback, and with that all that its callers held.
    """
    if len(text) > LARGEST:
        return None
    work.spend(len(text) * BYTE_NS)
    try:
        compiled(text, 0)
    except SyntaxError as error:
        return error.lineno or 1
    except ValueError:  # null bytes
        return text.count(b"\n", 0, max(text.find(b"\0"), 0)) + 1
    except (RecursionError, MemoryError):  # nesting beyond the compiler's own limits
        return None
    return None


def compiled(text: bytes, flags: int = ast.PyCF_ONLY_AST) -> None:
    """Compile ``text`` with the ``flags`` of :func:`compile`, without warnings; raises what it raises."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, "<fill>", "exec", flags=flags, dont_inherit=True)


@work.cached(maxsize=2)
def without_newer(text: bytes) -> bytes | None:
    """The text with syntax that is newer than this interpreter replaced by older syntax of as many lines.

    The grammar tells which it has: type parameters, ``type`` statements, any quote in an f-string, template strings,
    ``except A, B``. None without any, with more than :data:`MAX_NESTED` strings in each other, and where no parse ends.
    """
    language = language_for(name="python")
    if sys.version_info >= NEWEST or HINTS.search(text) is None or language is None:
        return None
    try:
        root = language.parser().parse(text).root_node
    except UnparsableError:
        return None
    if not _is_flat(root):
        return None
    return splice(text, found) if (found := list(_replacements(root))) else None


def _is_flat(root: Node) -> bool:
    """Whether a tree has no more than :data:`MAX_NESTED` strings in each other."""
    waiting = [(root, 0)]
    while waiting:
        node, level = waiting.pop()
        level += node.type == "string"
        if level > MAX_NESTED:
            return False
        waiting += [(child, level) for child in node.named_children]
    return True


def _replacements(root: Node) -> Iterator[tuple[int, int, bytes]]:
    """The replacements (start, end, text) in the order of the text, none within another."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        older = _older(node)
        if older is None:
            waiting += reversed(node.children)
        else:
            yield older


def _older(node: Node) -> tuple[int, int, bytes] | None:
    """The range of a node's newer syntax and its replacement; None without any."""
    lines = node.end_point.row - node.start_point.row
    if node.type == "type_alias_statement":
        return node.start_byte, node.end_byte, b"_ = (" + b"\n" * lines + b"0)"
    if node.type == "type_parameter" and node.parent is not None and node.parent.type in BOUNDS:
        return node.start_byte, node.end_byte, b"\\\n" * lines
    if node.type == "string" and _is_newer_string(node):
        quote = b'"""' if lines else b'"'
        return node.start_byte, node.end_byte, quote + b"\n" * lines + quote
    if node.type == "except_clause":
        values = node.children_by_field_name("value")
        if len(values) > 1 and all(value.type != "as_pattern" for value in values):
            start, end = values[0].start_byte, values[-1].end_byte
            own = (node.text or b"")[start - node.start_byte : end - node.start_byte]
            return start, end, b"(" + own + b")"
    return None


def _is_newer_string(node: Node) -> bool:
    """Whether a string with expressions is newer than the interpreter, though all its expressions are valid.

    A template string always is, an f-string only if the interpreter cannot parse it.
    """
    begin = node.children[0].text or b"" if node.children else b""
    if not {b"f", b"t"} & {bytes([byte]) for byte in begin.lower()} or node.has_error:
        return False
    if b"t" not in begin.lower() and _reads(node.text or b""):
        return False
    holes = [child for child in node.children if child.type == "interpolation"]
    inner = [child.child_by_field_name("expression") for child in holes]
    return all(one is not None and _reads(_rewritten(one)) for one in inner)


def _rewritten(node: Node) -> bytes:
    text = node.text or b""
    return without_newer(text) or text


def _reads(expression: bytes) -> bool:
    try:
        compiled(b"(" + expression + b"\n)")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


COMPILES: dict[str, Callable[[bytes], bool]] = {"python": python_compiles}
