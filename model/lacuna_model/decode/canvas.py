"""The canvas: the slots that stand for the gaps, block by block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.constraint import EMPTY_IDS, EMPTY_LOGP, GapView, TokenText
from lacuna_model.core.context import Gap
from lacuna_model.core.stopping import StopRule
from lacuna_model.decode.confidence import UNKNOWN_LOG_PROB

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Marginals:
    """What a pass says of the slots of a block: candidates [B, K] best first, their log-probabilities, entropy [B].

    They reach as far as the pass does: nothing is known of slots behind the last row. ``exact`` counts the leading
    open slots whose candidates hold beside each other: the base has read the tokens in front of each, so that they may
    be committed in one go. Else that is the first open slot alone, or, where the model reads ``anywhere`` equally
    well, the surest. Of a gap that ``waits`` for others nothing is committed yet.
    """

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]
    entropy: NDArray[np.float32]
    exact: int = 0
    anywhere: bool = False
    waits: bool = False


@dataclass(slots=True)
class Canvas:
    """One gap's slots while it is filled.

    ``done`` are the tokens of finished blocks, ``slots`` the current block (None: open). ``budget`` is how many
    tokens may follow behind this block. Of several candidates for one gap each has a canvas, which begins with the
    tokens of ``begin``. The ``tentative`` slots may yet be open again. ``rivals`` has for places, counted over all
    blocks, the next best token and by how many nats it was behind the one that stands there, and ``log_probs`` the
    log-probability that the model gave the token there.
    """

    gap: Gap
    block_size: int
    budget: int
    min_tokens: int = 0
    stop: StopRule | None = None
    candidate: int = 0
    begin: Sequence[int] = ()
    done: list[int] = field(default_factory=list)
    slots: list[int | None] = field(default_factory=list)
    tentative: set[int] = field(default_factory=set)
    rivals: dict[int, tuple[float, int]] = field(default_factory=dict)
    log_probs: dict[int, float] = field(default_factory=dict)
    closed: bool = False

    def open_block(self) -> None:
        """Put the current block's tokens to the finished ones and open the next, as large as the budget allows."""
        self.done += [token for token in self.slots if token is not None]
        size = min(self.block_size, self.budget)
        self.slots = [None] * size
        self.budget -= size
        self.closed = size == 0

    @property
    def key(self) -> Key:
        """What tells a canvas from the others of a request: its candidate, and the number of its gap."""
        return self.candidate, self.gap.index

    @property
    def least(self) -> int:
        """How many tokens come before any end: those asked for, and the healed one that is none of the fill's own."""
        return self.min_tokens + bool(self.gap.prefix)

    @property
    def room(self) -> int:
        """How many tokens the current block and those behind it may hold."""
        return len(self.slots) + self.budget

    @property
    def frontier(self) -> int:
        """The first open slot; the block's size where none is open."""
        return next((i for i, token in enumerate(self.slots) if token is None), len(self.slots))

    def commit(self, slot: int, token: int, eog_id: int, *, tentative: bool = False) -> None:
        """Give a slot its token; end-of-gap cuts the block behind it and closes the fill once all before is filled.

        What is not tentative itself confirms what was.
        """
        self.tentative = self.tentative | {slot} if tentative else set()
        self.slots[slot] = token
        if token == eog_id:
            del self.slots[slot + 1 :]
        if self.slots and self.slots[-1] == eog_id and None not in self.slots:
            self.slots.pop()
            self.budget = 0
            self.closed = True

    def remember(self, slot: int, token: int, seen: Marginals) -> None:
        """Keep what was said of the token that a slot receives, and its rival, where it is the best one.

        Nothing was said of slots that the pass did not reach: the constraint fills them, too.
        """
        place = len(self.done) + slot
        if slot >= len(seen.ids):
            self.log_probs[place] = UNKNOWN_LOG_PROB
            return
        offered = np.flatnonzero(seen.ids[slot] == token)
        log_prob = float(seen.logp[slot, offered[0]]) if len(offered) else UNKNOWN_LOG_PROB
        self.log_probs[place] = max(log_prob, UNKNOWN_LOG_PROB)
        self.rivals.pop(place, None)
        if seen.ids[slot, 0] == token:
            self.rivals[place] = float(seen.logp[slot, 0] - seen.logp[slot, 1]), int(seen.ids[slot, 1])

    def remask(self, slot: int) -> None:
        """Open the committed slots from ``slot`` up to the first that is open."""
        for place in range(slot, self.frontier):
            self.slots[place] = None
            self.tentative.discard(place)

    @property
    def begun(self) -> Sequence[int]:
        """The tokens of ``begin`` that are still to come in the current block, from the frontier on."""
        return self.begin[len(self.done) + self.frontier : len(self.done) + len(self.slots)]

    @property
    def is_full(self) -> bool:
        """Whether no slot of the block is open."""
        return None not in self.slots

    def close_by_rule(self, tokens: TokenText, is_confirmed: Callable[[], bool]) -> None:
        """Close the fill where its rule ends it: it never repeats what stands behind the gap.

        Not at tokens that may yet be taken back, unless they ``is_confirmed``: what is closed can be nothing else any
        more.
        """
        if self.stop is None:
            return
        prefix = self.gap.prefix.decode()
        written = tokens.decode_bytes(self.tokens()).decode("utf-8", errors="ignore")
        if not written.startswith(prefix):
            return
        text = written.removeprefix(prefix)
        kept = self.stop.end(text, final=self.closed)
        if kept is None or kept == text:
            return
        shortened = tokens.encode(prefix + kept)
        if len(shortened) >= self.least and (not self.tentative or is_confirmed()):
            self.done = shortened
            self.slots = []
            self.budget = 0
            self.closed = True

    def tokens(self) -> list[int]:
        """All tokens up to the first open slot."""
        return [*self.done, *(token for token in self.slots[: self.frontier] if token is not None)]

    def view(self, marginals: Marginals | None) -> GapView:
        """The gap as a constraint sees it."""
        ids, logp = (EMPTY_IDS, EMPTY_LOGP) if marginals is None else (marginals.ids, marginals.logp)
        rest = (self.budget, self.closed, self.gap.prefix, bool(self.tentative))
        return GapView(tuple(self.done), tuple(self.slots), ids, logp, *rest)
