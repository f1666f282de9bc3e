"""The fills of a request: a first one, and forks of it where several are wanted.

A fork repeats the first fill up to a place of low confidence, and takes the next best token there. The first fill is
followed by the forks with the likeliest such tokens; one with fewer unknown names comes before it.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from lacuna_model.core.constraint import Constraint, TokenText, Verdict
from lacuna_model.core.params import SlotView, Snapshot
from lacuna_model.decode.denoise import LoopCounts, LoopEnd, denoise
from lacuna_model.decode.fill import Fill, Reader, shown
from lacuna_model.decode.gate import Judgement

Fills = tuple[str, ...]
# The first tokens of a candidate's fills, a run of tokens for every gap.
Begins = Sequence[Sequence[int]]
# A fork may take any token that was not ruled out; ruled-out tokens are thousands of nats below the best.
POSSIBLE = 50.0
# The first fill waits for the forks, for so many seconds at most where there is a time limit.
FORK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """Candidates that are written side by side: the model that reads them, their fills, and a constraint for each."""

    reader: Reader
    fills: Sequence[Fill]
    constraints: Sequence[Constraint]


class Candidates:
    """Finds the fills of a request: a first one, and forks of it where several are wanted.

    ``attempt`` makes the reader, fills and constraints for candidates that begin with the given tokens. ``judge`` says
    how likely the delivered text of a fill is right. ``found`` has the fills, best first, and ``judgements`` what was
    said of each, by gap; ``counts`` are those of all loops.
    """

    def __init__(
        self,
        attempt: Callable[[Sequence[Begins]], Attempt],
        num_gaps: int,
        tokens: TokenText,
        wanted: int,
        judge: Callable[[str, Fill], Judgement],
    ) -> None:
        self._attempt = attempt
        self._attempts = [attempt([[()] * num_gaps])]
        self._tokens = tokens
        self._wanted = wanted
        self._judge = judge
        self.found: list[Fills] = []
        self.judgements: dict[Fills, tuple[Judgement, ...]] = {}
        self.counts = LoopCounts()
        self._lines: Fills = ()
        self._of_lines: tuple[Judgement, ...] = ()

    @property
    def counted(self) -> dict[str, Any]:
        """The counts of all attempts so far, as snapshots and stats name them."""
        checks = [constraint.stats for attempt in self._attempts for constraint in attempt.constraints]
        return {
            "nfe": sum(attempt.reader.passes for attempt in self._attempts),
            "vetoes": sum(one.vetoes for one in checks),
            "deferrals": sum(one.deferrals for one in checks),
            "constraint_ms": self.counts.constraint_ms,
        }

    @property
    def constrained(self) -> bool:
        """Whether anything is checked at all."""
        return self._attempts[0].constraints[0].active

    def denoise(self, deadline: float | None) -> Generator[Snapshot, None, LoopEnd]:
        """Run the loop, then once more over the forks; of those, only what has ended in time is kept."""
        (first,) = self._attempts
        end = yield from self._run_loop(first, deadline)
        if end.verdict.fills is not None:
            self.found = [end.verdict.fills]
        if end.outcome == "deadline" or self._wanted == 1:
            return end
        begins = forks(first.fills, self._wanted - 1, POSSIBLE, self._tokens.eog_id)
        if not begins:
            return end
        others = self._attempt(begins)
        self._attempts.append(others)
        if deadline is not None:
            deadline = min(deadline, time.monotonic() + FORK_SECONDS)
        forked = yield from self._run_loop(others, deadline)
        own = [
            verdict.fills
            for number, (verdict, begin) in enumerate(zip(forked.verdicts, begins, strict=False))
            if all(fill.has_ended for fill in others.fills if fill.candidate == number)
            and verdict.fills is not None
            and self._goes_on(verdict.fills, begin)
        ]
        if own:
            unknown = {fills: sum(one.unknown for one in self.judgements[fills]) for fills in [*self.found, *own]}
            self.found = sorted(unknown, key=unknown.__getitem__)[: self._wanted]
            end = LoopEnd("ok", Verdict("ok", self.found[0]))
        return end

    def _goes_on(self, fills: Fills, begins: Begins) -> bool:
        """Whether a fork's fills hold its own token, or end where that is the end; else they cut the first ones."""
        eog = self._tokens.eog_id
        for first, fill, begin in zip(self._attempts[0].fills, fills, begins, strict=True):
            if list(begin) != [*first.tokens, eog]:
                same = self._tokens.decode_bytes(begin[:-1])[len(first.gap.prefix) :]
                return begin[-1] == eog or not same.startswith(fill.encode())
        return True

    def _judged(self, texts: Fills, fills: Sequence[Fill], candidate: int) -> tuple[Judgement, ...]:
        own = (fill for fill in fills if fill.candidate == candidate)
        return tuple(map(self._judge, texts, own))

    def _run_loop(self, attempt: Attempt, deadline: float | None) -> Generator[Snapshot, None, LoopEnd]:
        """Run one loop; snapshots show the first candidate, in its final state while the forks are written."""
        loop = denoise(attempt.reader, attempt.fills, attempt.constraints, self._tokens, self.counts, deadline=deadline)
        end = yield from shown(loop, lambda _: self._snapshot(self._attempts[0]))
        for candidate, verdict in enumerate(end.verdicts):
            if verdict.fills is not None:
                self.judgements.setdefault(verdict.fills, self._judged(verdict.fills, attempt.fills, candidate))
        return end

    def _snapshot(self, first: Attempt) -> Snapshot:
        """The fills now: their tokens, and behind them what is drafted, without the healed text before the gap.

        The confidence of a token is the probability that the model gave it, that of a draft how likely it holds.
        """
        texts, slots = list[str](), []
        for fill in first.fills:
            coming = first.reader.drafted(fill) if fill.is_open else ()
            texts.append(fill.text(self._tokens, [one.token for one in coming if one.token is not None]) or "")
            views = [
                SlotView(self._text(token), "committed", math.exp(fill.log_probs.get(place, 0.0)))
                for place, token in enumerate(fill.tokens)
            ]
            views += [
                SlotView("", "mask", 0.0)
                if one.token is None
                else SlotView(self._text(one.token), "draft", one.probability)
                for one in coming
            ]
            slots.append(tuple(_without(views, fill.gap.prefix.decode())))
        written = tuple(fill.text(self._tokens) or "" for fill in first.fills)
        lines = tuple(text[: text.rfind("\n") + 1] for text in written)
        if lines != self._lines:
            self._lines, self._of_lines = lines, self._judged(lines, first.fills, 0)
        return Snapshot(
            self.counts.steps,
            tuple(texts),
            tuple(slots),
            written=written,
            confidence=tuple(one.lines for one in self._of_lines),
            words=tuple(one.words for one in self._of_lines),
            **self.counted,
        )

    def _text(self, token: int) -> str:
        return self._tokens.token_bytes(token).decode(errors="replace")


def _without(slots: Iterable[SlotView], healed: str) -> Iterator[SlotView]:
    """Slots without the ``healed`` text; a fill that is shown has their texts, but for parts of characters."""
    for slot in slots:
        is_healed = bool(healed)
        left, healed = slot.text[len(healed) :], healed[len(slot.text) :]
        if left or not is_healed:
            yield replace(slot, text=left)


def forks(fills: Sequence[Fill], count: int, within: float, eog_id: int) -> list[Begins]:
    """The first tokens of up to ``count`` forks of the finished ``fills``, those with the likeliest rivals first.

    A rival's log-probability is less than ``within`` nats below that of the token taken. Gaps that do not fork keep
    their fills.
    """
    whole = [[*fill.tokens, eog_id] for fill in fills]
    rivals = sorted(
        (gap_to_best, gap, place, token)
        for gap, fill in enumerate(fills)
        for place, (gap_to_best, token) in fill.rivals.items()
        if gap_to_best < within and place < len(whole[gap])  # a stop rule may have cut it off
    )
    return [[*whole[:gap], [*whole[gap][:place], token], *whole[gap + 1 :]] for _, gap, place, token in rivals[:count]]
