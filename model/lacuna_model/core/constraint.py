"""The protocol between the denoise loop and a constraint, and the constraint that allows everything.

The loop owns the canvas. A constraint sees only views of it, free of torch, and decides which of the proposed commits
may happen: once a step through ``admit``, and once at the end through ``finish``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

EMPTY_IDS: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)
EMPTY_LOGP: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class GapView:
    """One gap as the constraint sees it.

    ``done`` holds the token ids of finished blocks, which never change again. ``slots`` is the current block: a token
    id where committed, None where open. The end-of-gap id in ``slots`` closes the fill; slots after it do not count.
    ``ids`` [slots, K] and ``logp`` [slots, K] are the model's candidates per slot, best first (the end-of-gap id may be
    among them), with their log-probabilities. ``budget`` is how many more tokens may follow this block. ``prefix`` is
    the healed text: the bytes before the gap that the gap's tokens repeat and the fill's text leaves out.
    """

    done: tuple[int, ...]
    slots: tuple[int | None, ...]
    ids: NDArray[np.int64] = field(default_factory=lambda: EMPTY_IDS)
    logp: NDArray[np.float32] = field(default_factory=lambda: EMPTY_LOGP)
    budget: int = 0
    closed: bool = False
    prefix: bytes = b""


@dataclass(frozen=True, slots=True)
class Commit:
    """Gives a slot of a gap's current block a token."""

    gap: int
    slot: int
    token: int


@dataclass(frozen=True, slots=True)
class Remask:
    """Opens the committed slots of a gap's current block again, from ``slot`` up to the first open one."""

    gap: int
    slot: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The final decision about the fills: one text per gap, or None where no valid fill is known."""

    status: Literal["ok", "no_valid_fill"]
    fills: tuple[str, ...] | None
    message: str = ""


@dataclass(slots=True)
class ConstraintStats:
    """Counters that a constraint keeps over one fill."""

    verifies: int = 0
    vetoes: int = 0
    swaps: int = 0
    deferrals: int = 0


class Constraint(Protocol):
    """Decides which proposed commits may happen, so that the complete fills satisfy it."""

    @property
    def stats(self) -> ConstraintStats:
        """The counts of this fill's checks so far."""
        ...

    @property
    def active(self) -> bool:
        """Whether anything is checked at all; files in an unknown language are filled unconstrained and reported so."""
        ...

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """Return the commits that may happen: a subset of ``proposal``, except where a token is swapped for another.

        A remask takes back what was committed in the current block. An empty answer means that no token may follow:
        the loop ends the fills through ``finish``.
        """
        ...

    def confirms(self, gap: int, view: GapView) -> bool:
        """Whether a closed fill of a gap may be its last one, given the other gaps as they were seen last."""
        ...

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """Check the complete fills once more; ``truncate`` allows cutting at a line end (a deadline ran out)."""
        ...

    def close(self) -> None:
        """End any search that still runs; no further call follows."""
        ...


class TokenText(Protocol):
    """Turns token ids into bytes and back, for a constraint."""

    eog_id: int
    vocab_size: int

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; a byte-level token may be part of a UTF-8 character."""
        ...

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of a run of tokens."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text; special tokens are never produced."""
        ...


class Unconstrained:
    """Admits everything; the result is the text on the canvas."""

    active = False

    def __init__(self, tokens: TokenText) -> None:
        self.stats = ConstraintStats()
        self._tokens = tokens

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """Every proposed commit."""
        return list(proposal)

    def confirms(self, gap: int, view: GapView) -> bool:
        """True: every fill may end."""
        return True

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The fills as committed, without incomplete UTF-8 at the end."""
        return Verdict("ok", tuple(fill_text(gap, self._tokens, truncate=truncate) for gap in gaps))

    def close(self) -> None:
        """Do nothing."""


def with_fill(gap: GapView, fill: Sequence[int]) -> GapView:
    """The gap, closed with these tokens as its whole fill."""
    return GapView(tuple(fill), (), closed=True, prefix=gap.prefix)


def changed(view: GapView, changes: Iterable[Commit | Remask]) -> GapView:
    """Return a gap after some commits and remasks; unlike a canvas it keeps slots after an end-of-gap."""
    slots = list(view.slots)
    for one in changes:
        if isinstance(one, Commit):
            slots[one.slot] = one.token
        else:
            end = slots.index(None) if None in slots else len(slots)
            slots[one.slot : end] = [None] * (end - one.slot)
    return replace(view, slots=tuple(slots))


def fill_tokens(gap: GapView, eog_id: int) -> list[int]:
    """The committed tokens of a gap from its start to the first open slot or end-of-gap."""
    tokens = list(gap.done)
    for token in gap.slots:
        if token is None or token == eog_id:
            break
        tokens.append(token)
    return tokens


def fill_text(gap: GapView, tokens: TokenText, *, truncate: bool) -> str:
    """A gap's committed text; with ``truncate`` an unfinished fill ends at its last whole line."""
    data = tokens.decode_bytes(fill_tokens(gap, tokens.eog_id))[len(gap.prefix) :]
    if truncate and not gap.closed:
        cut = data.rfind(b"\n")
        data = data[: cut + 1]
    return data.decode("utf-8", errors="ignore")
