"""Parses texts with a common beginning, each from the tree of the previous one."""

from tree_sitter import Point, Tree

from lacuna_model.languages.language import Language


class Reparser:
    """Parses one text after another; all share at least their first ``front`` bytes."""

    def __init__(self, language: Language, front: int) -> None:
        self._parser = language.parser()
        self._front = front
        self._text = b""
        self._tree = self._parser.parse(b"")

    def parse(self, text: bytes) -> Tree:
        """Return the tree of a text."""
        old, least = self._text, min(len(self._text), len(text))
        begin = min(self._front, least)
        while begin < least and text[begin] == old[begin]:
            begin += 1
        point = advance(Point(0, 0), text[:begin])
        ends = advance(point, old[begin:]), advance(point, text[begin:])
        self._tree.edit(begin, len(old), len(text), point, *ends)
        self._text, self._tree = text, self._parser.parse(text, self._tree)
        return self._tree


def advance(point: Point, text: bytes) -> Point:
    """Return the point after a ``text`` that begins at ``point``."""
    rows = text.count(b"\n")
    column = len(text) - text.rfind(b"\n") - 1 if rows else point.column + len(text)
    return Point(point.row + rows, column)
