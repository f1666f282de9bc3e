"""The protocol between the loop and a constraint, and the constraint that allows everything.

A fill is a growing list of tokens, which the loop owns. A model reads a run of tokens that may follow; a constraint,
free of torch, says how much of the run is taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.context import TextTokenizer

# The log-probability of a token that was not among the model's candidates: the constraint chose it.
UNKNOWN_LOG_PROB = -12.0


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens of one gap that a model has read one after another, and what it would have read in place of each.

    ``ids`` [n, K] are the candidates of n places, the token that was read (or drawn) first, with their
    log-probabilities ``logp`` [n, K]. The end-of-gap may be the last token.
    """

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tokens(self) -> list[int]:
        """The tokens that were read."""
        found: list[int] = self.ids[:, 0].tolist()
        return found

    def part(self, first: int, stop: int) -> "Run":
        """The tokens from place ``first`` up to ``stop``."""
        return Run(self.ids[first:stop], self.logp[first:stop])

    def log_prob(self, place: int, token: int) -> float:
        """The log-probability (nats) of a token at a place; ``UNKNOWN_LOG_PROB`` where it was no candidate."""
        if not 0 <= place < len(self.ids):
            return UNKNOWN_LOG_PROB
        ranks = np.flatnonzero(self.ids[place] == token)
        return max(float(self.logp[place, ranks[0]]), UNKNOWN_LOG_PROB) if len(ranks) else UNKNOWN_LOG_PROB


@dataclass(frozen=True, slots=True)
class FillSoFar:
    """A fill as a constraint sees it: its tokens, of which it may have ``most``, and whether it has ``ended``.

    ``prefix`` is the healed text: the bytes before the gap that its tokens repeat and the fill's text leaves out.
    """

    tokens: tuple[int, ...] = ()
    most: int = 0
    ended: bool = False
    prefix: bytes = b""


@dataclass(frozen=True, slots=True)
class Taken:
    """What becomes of a fill for which a run was read.

    Of its tokens and those of the run behind them ``kept`` stay, then follow those of ``write``. With ``ends`` that is
    the whole fill. ``stuck``: no token may follow; the verdict says what may be delivered.
    """

    kept: int
    write: tuple[int, ...] = ()
    ends: bool = False
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The final decision about the fills: one text per gap, or None where no valid fill is known.

    ``gap`` is the one that has none, if one alone is to blame.
    """

    status: Literal["ok", "no_valid_fill"]
    fills: tuple[str, ...] | None
    message: str = ""
    gap: int | None = None


@dataclass(slots=True)
class ConstraintStats:
    """Counters that a constraint keeps over one fill."""

    vetoes: int = 0
    deferrals: int = 0


class Constraint(Protocol):
    """Decides what the gaps of a text may hold, so that the complete fills satisfy it.

    ``stats`` are the counts of its checks so far. ``active`` says whether anything is checked at all: files in an
    unknown language are filled unconstrained and reported so.
    """

    stats: ConstraintStats
    active: bool

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        """What becomes of the fill of a gap, behind whose tokens a model has read a run; ``fills`` are all gaps'."""
        ...

    def may_end(self, gap: int, fill: FillSoFar) -> bool:
        """Whether a fill may be the whole fill of a gap, given the other gaps as they were seen last."""
        ...

    def verdict(self, fills: Sequence[FillSoFar], *, late: bool) -> Verdict:
        """Check the complete fills once more; where it is ``late`` (a deadline ran out), they end with a line."""
        ...


class TokenText(TextTokenizer, Protocol):
    """Turns token ids into bytes and back, for a constraint."""

    eog_id: int

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of a run of tokens."""
        ...


class Unconstrained:
    """Takes everything; the result is the text of the fills."""

    active = False

    def __init__(self, tokens: TokenText) -> None:
        self.stats = ConstraintStats()
        self._tokens = tokens

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        """The whole run."""
        return whole_run(fills[gap], run.tokens, self._tokens.eog_id)

    def may_end(self, gap: int, fill: FillSoFar) -> bool:
        """True: every fill may end."""
        return True

    def verdict(self, fills: Sequence[FillSoFar], *, late: bool) -> Verdict:
        """The fills as written, without incomplete UTF-8 at the end."""
        return Verdict("ok", tuple(fill_text(fill, self._tokens, late=late) for fill in fills))


def whole_run(fill: FillSoFar, tokens: Sequence[int], eog_id: int) -> Taken:
    """All tokens behind a fill are taken; it ends with the first end-of-gap among them."""
    ends = eog_id in tokens
    return Taken(len(fill.tokens) + (tokens.index(eog_id) if ends else len(tokens)), ends=ends)


def fill_text(fill: FillSoFar, tokens: TokenText, *, late: bool) -> str:
    """The text of a fill; where it is ``late``, one that has not ended is cut to its whole lines."""
    data = tokens.decode_bytes(fill.tokens)[len(fill.prefix) :]
    if late and not fill.ended:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", errors="ignore")
