"""Cuts gaps into held-out files: one line, several lines, or two to four gaps at once."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import msgspec
import tree_sitter

from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import InfillRequest, Region
from training.files import parser_of
from training.stored import Document

Shape = Literal["line", "lines", "gaps"]
SHAPES: tuple[Shape, ...] = ("line", "lines", "gaps")

# As in the runner, engines get a limit per gap and no information about the true text.
MAX_TOKENS: dict[Shape, int] = {"line": 64, "lines": 192, "gaps": 64}

_MIN_LINES, _MAX_BYTES = 20, 200_000
_NEAR = 40  # largest distance in lines between the first gap of a case and the others


class Case(msgspec.Struct, frozen=True):
    """A file with gaps, and the true texts of the gaps in order."""

    shape: Shape
    package: str
    path: str
    request: InfillRequest
    truths: tuple[str, ...]

    def document(self, fills: Sequence[str]) -> str:
        """Returns the whole file with ``fills`` in its gaps."""
        source = self.request.text.encode()
        parts, position = [], 0
        for region, fill in zip(self.request.regions, fills, strict=True):
            parts += [source[position : region.start], fill.encode()]
            position = region.end
        return b"".join([*parts, source[position:]]).decode()


def sample_cases(documents: Sequence[Document], num_cases: int, seed: int) -> list[Case]:
    """Returns ``num_cases`` cases, the shapes in turn, from files drawn by ``seed``; the same arguments give the same.

    The documents must parse; files that are too short or too long are skipped. Raises LacunaError if none is left.
    """
    usable = long_enough(documents)
    rng = Random(seed)
    cases: list[Case] = []
    for i in range(num_cases):
        cases.append(_cut(rng.choice(usable), SHAPES[i % len(SHAPES)], rng))
    return cases


def long_enough(documents: Sequence[Document]) -> list[Document]:
    """Returns the documents that gaps can be cut into; raises LacunaError if there are none."""
    usable = [
        document
        for document in documents
        if document.text.count("\n") >= _MIN_LINES and len(document.text) <= _MAX_BYTES
    ]
    usable = [document for document in usable if len(code_lines(document)) >= _MIN_LINES]
    if not usable:
        raise LacunaError("the held-out corpus has no file long enough to cut gaps into")
    return usable


def code_lines(document: Document) -> list[int]:
    """Returns the indices of lines that may become gaps: code of four characters or more, no comment or docstring."""
    prose = _prose(parser_of(document.language).parse(document.text.encode()).root_node)
    return [i for i, line in enumerate(document.text.split("\n")) if len(line.strip()) >= 4 and i not in prose]


def _prose(root: tree_sitter.Node) -> set[int]:
    """Returns the indices of lines that begin with or in a comment, or lie in a string of several lines."""
    rows: set[int] = set()
    nodes = [root]
    while nodes:
        node = nodes.pop()
        first, last = node.start_point.row, node.end_point.row - (node.end_point.column == 0)
        if "comment" in node.type:
            before = node.prev_sibling
            behind_code = before is not None and before.end_point.row == first
            rows.update(range(first + behind_code, last + 1))
        elif "string" in node.type and last > first:
            rows.update(range(first, last + 1))
        else:
            nodes += node.named_children
    return rows


def _cut(document: Document, shape: Shape, rng: Random) -> Case:
    lines = document.text.split("\n")
    spans = sorted(_spans(code_lines(document), shape, rng))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text, truths, regions, position = "", [], [], 0
    for first, last in spans:
        # The gap goes from the end of the indentation, where editors put the cursor, to the end of the line.
        start = starts[first] + len(lines[first]) - len(lines[first].lstrip())
        end = starts[last] + len(lines[last])
        text += document.text[position:start]
        at = len(text.encode())
        regions.append(Region(at, at, max_tokens=MAX_TOKENS[shape]))
        truths.append(document.text[start:end])
        position = end
    text += document.text[position:]
    request = InfillRequest(text=text, regions=tuple(regions), path=document.path, language=document.language)
    return Case(shape, document.package, document.path, request, tuple(truths))


def _spans(candidates: Sequence[int], shape: Shape, rng: Random) -> Iterator[tuple[int, int]]:
    """Yields the first and last line of every gap of a case."""
    first = rng.choice(candidates)
    if shape == "gaps":
        near = [i for i in candidates if 0 < i - first <= _NEAR]
        yield first, first
        yield from ((i, i) for i in rng.sample(near, min(len(near), rng.randint(1, 3))))
        return
    following = [i for i in candidates if first < i <= first + 4] if shape == "lines" else []
    yield first, rng.choice(following) if following else first
