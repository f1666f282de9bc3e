"""What the loop asks of a model."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lacuna_model.core.constraint import Run
from lacuna_model.decode.fill import Fill


@dataclass(frozen=True, slots=True)
class Drafted:
    """A token of a draft with the probability that it holds; None for a mask."""

    token: int | None
    probability: float = 0.0


class Reader(Protocol):
    """Reads the fills of all gaps of a request in shared passes, and scores complete fills."""

    @property
    def passes(self) -> int:
        """The forward passes made so far."""
        ...

    @property
    def corrections(self) -> int:
        """How many tokens of its guesses it has changed so far."""
        ...

    def announcing(self, fills: Sequence[Fill]) -> Generator[None, None, None]:
        """Say that ``read`` will be called with these fills, so that other requests may share the pass.

        It pauses where others may have their turn first: while it reads what drafts need, or so that they share that.
        """
        ...

    def going_ahead(self, fills: Sequence[Fill], runs: Sequence[Run | None]) -> Iterable[None]:
        """Begin the next pass as if the whole ``runs`` were taken, where a device works while the host asks for that.

        What is announced then for other fills takes the place of it. It pauses as ``announcing`` does.
        """
        ...

    def drafted(self, fill: Fill) -> Sequence[Drafted]:
        """What is drafted behind the tokens of a fill: what the announced pass verifies, or a guess so far."""
        ...

    def withdraw(self) -> None:
        """Take back what was announced and not read: the loop ends."""
        ...

    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """After one pass, the run behind the tokens of every fill; None for one that has ended or waits."""
        ...
