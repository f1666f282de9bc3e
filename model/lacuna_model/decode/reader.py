"""What the denoise loop asks of a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lacuna_model.decode.canvas import Canvas, Marginals


@dataclass(frozen=True, slots=True)
class Drafted:
    """A slot of a draft: its token with the probability that it holds, or None for a mask."""

    token: int | None
    probability: float = 0.0


class CanvasModel(Protocol):
    """Reads canvases: one forward pass over the open blocks of all gaps."""

    def announce(self, canvases: Sequence[Canvas]) -> None:
        """Say that ``read`` will be called with these canvases, so that other requests may share the pass."""
        ...

    def drafted(self, canvas: Canvas) -> Sequence[Drafted]:
        """What the announced pass reads of a canvas behind the tokens that it has."""
        ...

    def withdraw(self) -> None:
        """Take back what was announced and not read: the loop ends."""
        ...

    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """The marginals of every open canvas, drafts of the prior included; None for closed canvases."""
        ...

    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Take full blocks into the context before the next block is opened."""
        ...


class Reader(CanvasModel, Protocol):
    """A model that reads canvases and scores complete fills."""

    @property
    def passes(self) -> int:
        """The forward passes made so far."""
        ...

    @property
    def corrections(self) -> int:
        """How many filled slots it has changed so far."""
        ...

    def likelihood(self, fills: Sequence[Sequence[int]]) -> float:
        """Score the fills of all gaps, given as tokens: their log-probability over the square root of their length.

        Without the root, short and empty fills would win; divided by the length itself, long ones would.
        """
        ...
