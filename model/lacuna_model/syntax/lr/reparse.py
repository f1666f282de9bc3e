"""Parses texts with a common beginning, each from the tree of the previous one."""

from tree_sitter import Point, Tree

from lacuna_model.languages.language import Language


class Reparser:
    """Parses one text after another; ``same`` is how many bytes the last text had in common with the one before."""

    def __init__(self, language: Language) -> None:
        self._parser = language.parser()
        self._text = b""
        self._tree = self._parser.parse(b"")
        self.same = 0

    def parse(self, text: bytes) -> Tree:
        """Return the tree of a text."""
        if text == self._text:
            self.same = len(text)
            return self._tree
        old, self.same = self._text, _alike(self._text, text)
        point = advance(Point(0, 0), text[: self.same])
        ends = advance(point, old[self.same :]), advance(point, text[self.same :])
        edited = self._tree.copy()
        edited.edit(self.same, len(old), len(text), point, *ends)
        self._text, self._tree = text, self._parser.parse(text, edited)
        return self._tree


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their beginnings."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def advance(point: Point, text: bytes) -> Point:
    """Return the point after a ``text`` that begins at ``point``."""
    rows = text.count(b"\n")
    column = len(text) - text.rfind(b"\n") - 1 if rows else point.column + len(text)
    return Point(point.row + rows, column)
