"""What passes between the loop and a constraint, and the constraint that allows everything.

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

    def put_first(self, place: int, token: int) -> None:
        """Move ``token`` to the front of a place's candidates."""
        ids, logp = self.ids[place], self.logp[place]
        others = np.flatnonzero(ids != token)[: len(ids) - 1]
        ranks = np.flatnonzero(ids == token)
        first = logp[ranks[0]] if len(ranks) else logp.min()
        self.ids[place] = [token, *ids[others]]
        self.logp[place] = [first, *logp[others]]

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


class TokenText(TextTokenizer, Protocol):
    """Turns token ids into bytes and back, for a constraint."""

    eog_id: int

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of a run of tokens."""
        ...


class Constraint:
    """Decides what the gaps of a text may hold, so that the complete fills satisfy it; by itself it takes everything.

    ``stats`` are the counts of its checks so far. ``active`` says whether anything is checked at all: files in an
    unknown language are filled unconstrained and reported so.
    """

    active: bool = False

    def __init__(self, tokens: TokenText) -> None:
        self.stats = ConstraintStats()
        self._tokens = tokens

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        """What becomes of the fill of a gap, behind whose tokens a model has read a run; ``fills`` are all gaps'."""
        tokens = run.tokens
        ends = self._tokens.eog_id in tokens
        return Taken(len(fills[gap].tokens) + (tokens.index(self._tokens.eog_id) if ends else len(tokens)), ends=ends)

    def may_end(self, gap: int, fill: FillSoFar) -> bool:
        """Whether a fill may be the whole fill of a gap, given the other gaps as they were seen last."""
        return True

    def verdict(self, fills: Sequence[FillSoFar], *, late: bool) -> Verdict:
        """Check the complete fills once more; where it is ``late`` (a deadline ran out), they end with a line."""
        return Verdict("ok", tuple(self._whole_text(fill, late=late) for fill in fills))

    def _whole_text(self, fill: FillSoFar, *, late: bool) -> str:
        """The text of a fill; where it is ``late``, one that has not ended is cut to its whole lines."""
        data = self._tokens.decode_bytes(fill.tokens)[len(fill.prefix) :]
        if late and not fill.ended:
            data = data[: data.rfind(b"\n") + 1]
        return data.decode("utf-8", errors="ignore")
