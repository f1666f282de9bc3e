"""The canvas: the slots of one gap, filled block by block."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.constraint import EMPTY_IDS, EMPTY_LOGP, GapView, TokenText
from lacuna_model.core.context import Gap
from lacuna_model.core.stopping import StopRule
from lacuna_model.decode.confidence import UNKNOWN_LOG_PROB

Key = tuple[int, int]
# Slots of a block, where the model does not ask for another size.
BLOCK_SIZE = 16
# Of the places where a fill may end, so many are asked about after a pass.
MAX_ENDS = 3


@dataclass(frozen=True, slots=True)
class Marginals:
    """The result of a pass for a block's slots: candidates [B, K] best first, log-probabilities [B, K], entropy [B].

    Slots after the last row were not read. ``exact`` counts the leading open slots whose candidates hold together: the
    model has read the tokens before each, so they may be committed at once. Otherwise only the first open slot may.
    Nothing is committed in a gap that ``waits``: for others, or, where the model makes a ``guess`` of the whole gap,
    for the passes in which it fills and revises that.
    """

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]
    entropy: NDArray[np.float32]
    exact: int = 0
    guess: bool = False
    waits: bool = False

    def before(self, slot: int) -> "Marginals":
        """What a pass would have found that read only the slots before this one; all, where the slots are not exact."""
        return self.part(0, slot) if self.exact > 1 else self

    def part(self, first: int, stop: int) -> "Marginals":
        """The slots from ``first`` to ``stop``, of which one may be committed."""
        rows = slice(first, stop)
        return replace(self, ids=self.ids[rows], logp=self.logp[rows], entropy=self.entropy[rows], exact=1)


class Masks(Protocol):
    """Which tokens may follow others in a gap with a rule of its own."""

    def allowed(self, written: Sequence[int]) -> NDArray[np.int64] | None:
        """The tokens that may follow those ``written``, the end-of-gap among them; None if the rule does not tell."""
        ...


@dataclass(slots=True)
class Canvas:
    """One gap's slots while it is filled.

    ``done`` are the tokens of finished blocks, ``slots`` the current block (None: open). ``budget`` is how many tokens
    may follow this block. Each candidate for a gap has a canvas of its own, which begins with the tokens of ``begin``.
    What a pass reads of a text that is written ``anew`` is committed together: most of it is the old text, and the
    constraint finds its way with all of it. ``rivals`` and ``log_probs``
    are keyed by place, counted over all blocks: the next best token and how many nats it was below the committed one;
    and the log-probability that the model gave the committed token.
    """

    gap: Gap
    block_size: int
    budget: int
    min_tokens: int = 0
    stop: StopRule | None = None
    masks: Masks | None = None
    candidate: int = 0
    begin: Sequence[int] = ()
    anew: bool = False
    done: list[int] = field(default_factory=list)
    slots: list[int | None] = field(default_factory=list)
    rivals: dict[int, tuple[float, int]] = field(default_factory=dict)
    log_probs: dict[int, float] = field(default_factory=dict)
    closed: bool = False
    ruled: bool = False  # the stop rule has ended it
    most: int = field(init=False)  # tokens
    _texts: dict[str, list[int]] = field(default_factory=dict, repr=False)  # the tokens of texts that it may hold
    _ended: tuple[tuple[str, bool], list[list[int]]] | None = field(default=None, repr=False)  # the last of `ends`

    def __post_init__(self) -> None:
        self.most = self.budget

    def open_block(self) -> None:
        """Append the current block's tokens to the finished ones and open the next, as large as the budget allows."""
        self.done += [token for token in self.slots if token is not None]
        size = min(self.block_size, self.budget)
        self.slots = [None] * size
        self.budget -= size
        self.closed = size == 0

    @property
    def key(self) -> Key:
        """Identifies the canvas within its request: its candidate, and the number of its gap."""
        return self.candidate, self.gap.index

    @property
    def least(self) -> int:
        """How many tokens must precede an end: ``min_tokens``, and one for the healed text."""
        return self.min_tokens + bool(self.gap.prefix)

    @property
    def room(self) -> int:
        """How many tokens the current block and the following ones may hold."""
        return len(self.slots) + self.budget

    @property
    def frontier(self) -> int:
        """The first open slot; the block's size where none is open."""
        return self.slots.index(None) if None in self.slots else len(self.slots)

    def commit(self, slot: int, token: int, eog_id: int) -> None:
        """Give a slot its token; end-of-gap cuts off the later slots and closes the fill once no slot is open."""
        self.slots[slot] = token
        if token == eog_id:
            del self.slots[slot + 1 :]
        if self.slots and self.slots[-1] == eog_id and None not in self.slots:
            self.slots.pop()
            self.budget = 0
            self.closed = True

    def remember(self, slot: int, token: int, seen: Marginals) -> None:
        """Record the log-probability of the token that a slot receives, and its rival if the token is the best one.

        A slot that the pass did not read, which the constraint may fill, gets ``UNKNOWN_LOG_PROB``.
        """
        place = len(self.done) + slot
        if slot >= len(seen.ids):
            self.log_probs[place] = UNKNOWN_LOG_PROB
            return
        offered = seen.ids[slot].tolist()
        log_prob = float(seen.logp[slot, offered.index(token)]) if token in offered else UNKNOWN_LOG_PROB
        self.log_probs[place] = max(log_prob, UNKNOWN_LOG_PROB)
        self.rivals.pop(place, None)
        if offered[0] == token:
            self.rivals[place] = float(seen.logp[slot, 0] - seen.logp[slot, 1]), offered[1]

    def remask(self, slot: int) -> None:
        """Open the committed slots from ``slot`` up to the first that is open."""
        for place in range(slot, self.frontier):
            self.slots[place] = None

    @property
    def begun(self) -> Sequence[int]:
        """The tokens of ``begin`` that are still to be committed in the current block, from the frontier on."""
        return self.begin[len(self.done) + self.frontier : len(self.done) + len(self.slots)]

    @property
    def is_full(self) -> bool:
        """Whether no slot of the block is open."""
        return None not in self.slots

    def ends(self, tokens: TokenText, coming: Sequence[int] = ()) -> list[list[int]]:
        """The tokens of the fills where the stop rule may end it, the shortest first: at most ``MAX_ENDS``.

        ``coming`` tokens, the end-of-gap perhaps the last of them, would be committed next. Where the fill ends anyway
        is not among them.
        """
        if self.stop is None:
            return []
        final = self.closed or coming[-1:] == [tokens.eog_id]
        more = coming[:-1] if final and coming else coming
        text = self.written(tokens, more)
        if text is None:
            return []
        if self._ended is not None and self._ended[0] == (text, final):  # asked before a commit, and after it
            return self._ended[1]
        ends = list(dict.fromkeys(kept for kept in self.stop.ends(text, final=final) if kept != text))
        some = ends if len(ends) <= MAX_ENDS else [*ends[: MAX_ENDS - 1], ends[-1]]
        found = self._fills(tokens, some)
        self._ended = (text, final), found
        return found

    def whole(self, tokens: TokenText) -> list[list[int]]:
        """The tokens of the whole statements of a fill that has run into its budget; empty where that is not so."""
        if self.stop is None or not self._ran_out:
            return []
        text = self.written(tokens)
        return self._fills(tokens, list(self.stop.whole(text))) if text is not None else []

    @property
    def _ran_out(self) -> bool:
        """Whether the budget ended the fill: no slot is left, or not the model but the constraint ended it."""
        end = len(self.done) + self.frontier
        full = not self.closed and self.is_full and not self.budget
        return full or (self.closed and not self.ruled and end >= self.most - 1 and end not in self.rivals)

    def written(self, tokens: TokenText, more: Sequence[int] = ()) -> str | None:
        """The text of the committed tokens and ``more``; None before the healed text is written."""
        prefix = self.gap.prefix.decode()
        written = tokens.decode_bytes([*self.tokens(), *more]).decode("utf-8", errors="ignore")
        return written.removeprefix(prefix) if written.startswith(prefix) else None

    def _fills(self, tokens: TokenText, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts that the gap may hold."""
        for text in texts:
            if text not in self._texts:  # where a fill may end, later tokens leave the same text before the end
                self._texts[text] = tokens.encode(self.gap.prefix.decode() + text)
        fills = (self._texts[text] for text in texts)
        return [fill for fill in fills if self.least <= len(fill) <= self.most]

    def end_with(self, fill: Sequence[int]) -> None:
        """Close the fill with these tokens."""
        self.done, self.slots, self.budget, self.closed, self.ruled = list(fill), [], 0, True, True

    def tokens(self) -> list[int]:
        """All tokens up to the first open slot."""
        return [*self.done, *cast(list[int], self.slots[: self.frontier])]

    def view(self, marginals: Marginals | None) -> GapView:
        """The gap as a constraint sees it."""
        ids, logp = (EMPTY_IDS, EMPTY_LOGP) if marginals is None else (marginals.ids, marginals.logp)
        return GapView(tuple(self.done), tuple(self.slots), ids, logp, self.budget, self.closed, self.gap.prefix)
