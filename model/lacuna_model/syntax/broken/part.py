"""A text, or a part of a text that is broken elsewhere, in which the fills of a gap are checked."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.error_set import tree_faults
from lacuna_model.syntax.check.indentation import indentation_faults

Gap = tuple[int, int]


class Part(NamedTuple):
    """A text, or a part of a broken text, that is valid with the ``neutral`` fill in its gap."""

    text: bytes
    gap: Gap
    neutral: bytes
    document: Document | None = None  # for a part
    adds_error: Callable[[bytes], bool] | None = None  # whether a fill leaves more errors in the whole than ``neutral``


class AddedErrors:
    """Whether a whole text has more errors with a fill in its gap than with each of some others."""

    def __init__(self, text: bytes, gap: Gap, language: Language, others: Sequence[bytes]) -> None:
        self._front, self._behind = text[: gap[0]], text[gap[1] :]
        self._language, self._parser = language, language.parser()
        self._most = max(map(self._count, others))

    def __call__(self, fill: bytes) -> bool:
        """Whether there are more errors."""
        return self._count(fill) > self._most

    def _count(self, fill: bytes) -> int:
        text = self._front + fill + self._behind
        tree = self._parser.parse(text)
        columns = indentation_faults(tree, text) if self._language.columns else ()
        return len(tree_faults(tree)) + len(columns)
