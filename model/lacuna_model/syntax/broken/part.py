"""A text, or a part of a text that is broken elsewhere, in which the fills of a gap are checked."""

from collections.abc import Callable
from typing import NamedTuple

from lacuna_model.syntax.check.document import Document

Gap = tuple[int, int]


class Part(NamedTuple):
    """A text, or a part of a broken text, that is valid with the ``neutral`` fill in its gap."""

    text: bytes
    gap: Gap
    neutral: bytes
    document: Document | None = None  # for a part
    adds_error: Callable[[bytes], bool] | None = None  # whether a fill leaves more errors in the whole than ``neutral``
