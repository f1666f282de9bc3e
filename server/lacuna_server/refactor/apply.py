"""Which edits of a plan are sound, and how they are written."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.compilers import COMPILES
from lacuna_model.syntax.faults import Splice, all_faults, carried_over
from lacuna_model.text import lines
from lacuna_model.text.lines import splice
from lacuna_server.files import check_writable, unwritable
from lacuna_server.refactor import journal
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import Plan
from lacuna_server.refactor.rewriting.rewrite import Excerpts, Rewrite


class Soundness:
    """Compares texts with the original: no new syntax error, and they still compile if the original did.

    A file may parse although a fill has left its hole, as ``3)  # `` before the template's ``)``. So a fill must close
    no bracket that it has not opened, and no text after it may become part of its comment or string.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._faults = all_faults(source.tree, source.data, source.language)
        oracle = COMPILES.get(source.language.name)
        self._oracle = oracle if oracle is not None and oracle(source.data) else None
        self._excerpts = Excerpts(source)
        self._part = self

    def holds_alone(self, start: int, end: int, text: str, fills: Sequence[tuple[int, int]] = ()) -> bool:
        """Returns whether the original with one edit passes, as far as what is near it can tell.

        ``fills`` are byte ranges of ``text``.
        """
        excerpt, moved = self._excerpts.around(start, end)
        if excerpt is not self._part._source:
            self._part = Soundness(excerpt) if excerpt is not self._source else self
        begun = start - moved
        return self._part.holds([(begun, end - moved, text)], [(begun + first, begun + last) for first, last in fills])

    def holds(self, edits: Sequence[tuple[int, int, str]], fills: Sequence[tuple[int, int]] = ()) -> bool:
        """Returns whether the original with these ordered edits passes; ``fills`` are byte ranges of the new text."""
        text = splice(self._source.data, [(start, end, new.encode()) for start, end, new in edits])
        try:
            tree = self._source.language.parser().parse(text)
        except UnparsableError:
            return False
        splices = [Splice(start, end, len(new.encode())) for start, end, new in edits]
        if all_faults(tree, text, self._source.language) - carried_over(self._faults, splices):
            return False
        if not all(_keeps_to_its_hole(tree.root_node, *fill) for fill in fills):
            return False
        return self._oracle is None or self._oracle(text)


def _keeps_to_its_hole(root: Node, start: int, end: int) -> bool:
    depth = 0
    for leaf in _leaves(root, start, end):
        if leaf.start_byte >= start and leaf.end_byte <= end:
            depth += lines.step(leaf.type)
        elif start <= leaf.start_byte and end < leaf.end_byte and _swallows(leaf, start):
            return False
        if depth < 0:
            return False
    return depth == 0


def _leaves(root: Node, start: int, end: int) -> Iterator[Node]:
    """Yields the leaves that overlap the bytes ``start``..``end``, in order."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.start_byte >= end or node.end_byte <= start:
            continue
        if node.child_count == 0:
            yield node
        stack += reversed(node.children)


def _swallows(leaf: Node, start: int) -> bool:
    """Returns whether a leaf is a comment, or the inside of a string whose opening quote is not before the fill."""
    if "comment" in leaf.type:
        return True
    return leaf.start_byte > start and any(word in leaf.type for word in ("string", "heredoc"))


def apply(plan: Plan) -> list[str]:
    """Writes every ready edit and returns the paths of the changed files.

    Raises RequestError, and writes nothing, where a file has changed since the plan was made or cannot be written.
    """
    contents = []
    for file in plan.ready.files:
        path = Path(file.path)
        try:
            before = path.read_bytes()
        except OSError as error:
            raise RequestError(f"cannot read {path}: {error.strerror}; nothing was written") from error
        check_writable([path])
        file.check(before, "the preview")
        contents.append((path, before, file.rewritten(before)))
    journal.replace_all(contents)
    return [str(path) for path, _, _ in contents]


def writable(
    found: Sequence[tuple[Source, list[Rewrite]]],
) -> tuple[list[tuple[Source, list[Rewrite]]], list[str]]:
    """Returns the places of the files that may be written, and a line about each of the other files.

    A document that is open is its editor's to write.
    """
    kept, left_out = [], []
    for source, rewrites in found:
        if source.version is None and (reason := unwritable(Path(source.path))):
            left_out.append(f"{source.path} {reason}; not changed")
        else:
            kept.append((source, rewrites))
    return kept, left_out
