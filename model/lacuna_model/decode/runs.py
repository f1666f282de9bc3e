"""The loop's runs over the candidates of a request: a first fill, and forks of it where several are wanted."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

from msgspec.structs import replace as replace_fields

from lacuna_model.core.constraint import ConstraintStats, TokenText, Verdict
from lacuna_model.core.params import DecodeOptions, Snapshot
from lacuna_model.decode import confidence
from lacuna_model.decode.candidates import Begins, Fills, forks, likeliest_first
from lacuna_model.decode.canvas import Canvas
from lacuna_model.decode.confidence import Calibration
from lacuna_model.decode.denoise import LoopEnd, denoise
from lacuna_model.decode.reader import Reader
from lacuna_model.decode.side_by_side import SideBySide, total
from lacuna_model.decode.snapshots import shown

# A fork may take any token that was not ruled out; ruled-out tokens are thousands of nats below the best.
POSSIBLE = 50.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """Candidates that are denoised together: the model that reads them, their canvases and constraints."""

    model: Reader
    canvases: Sequence[Canvas]
    constraint: SideBySide


class Candidates:
    """Finds the fills of a request: a first one, and forks of it where several are wanted.

    ``attempt`` makes the model, canvases and constraints for candidates that begin with the given tokens. ``found`` has
    the fills, likeliest first. ``confidence`` maps each to its probability per gap and line, as
    :mod:`lacuna_model.decode.confidence` computes it.
    """

    def __init__(
        self,
        attempt: Callable[[Sequence[Begins]], Attempt],
        num_gaps: int,
        tokens: TokenText,
        options: DecodeOptions,
        wanted: int,
        calibration: Calibration,
    ) -> None:
        self._attempt = attempt
        self._attempts = [attempt([[()] * num_gaps])]
        self._tokens = tokens
        self._options = options
        self._wanted = wanted
        self._calibration = calibration
        self.found: list[Fills] = []
        self.confidence: dict[Fills, tuple[tuple[float, ...], ...]] = {}
        self._shown: Snapshot | None = None
        self._lines: Fills = ()
        self._sure_of_lines: tuple[tuple[float, ...], ...] = ()

    @property
    def passes(self) -> int:
        """The forward passes of all attempts."""
        return sum(attempt.model.passes for attempt in self._attempts)

    @property
    def corrections(self) -> int:
        """The filled slots that were changed, in all attempts."""
        return sum(attempt.model.corrections for attempt in self._attempts)

    @property
    def checks(self) -> ConstraintStats:
        """The summed constraint counters of all attempts."""
        return total(attempt.constraint.stats for attempt in self._attempts)

    @property
    def constrained(self) -> bool:
        """Whether anything is checked at all."""
        return self._attempts[0].constraint.active

    def denoise(self, cancelled: Callable[[], bool], deadline: float | None) -> Generator[Snapshot, None, LoopEnd]:
        """Run the loop, then once more over the forks; if the deadline ends the second run, the first fill is kept."""
        (first,) = self._attempts
        ending = yield from self._turns(first, cancelled, deadline)
        if ending.verdict.fills is not None:
            self.found = [ending.verdict.fills]
        if ending.outcome in ("deadline", "cancelled") or self._wanted == 1:
            return ending
        begins = forks(first.canvases, self._wanted - 1, POSSIBLE, self._tokens.eog_id)
        if not begins:
            return ending
        others = self._attempt(begins)
        self._attempts.append(others)
        forked = yield from self._turns(others, cancelled, deadline)
        ending.counts.steps += forked.counts.steps
        ending.counts.constraint_ms += forked.counts.constraint_ms
        if forked.outcome == "cancelled":
            return forked
        if forked.outcome == "ok":
            own = [one for one, number in others.constraint.found.items() if self._goes_on(one, begins[number])]
            found = likeliest_first([*self.found, *own], self._likelihood)
            self.found = found[: self._wanted]
            ending = LoopEnd("ok", Verdict("ok", self.found[0]), ending.counts)
        return ending

    def _goes_on(self, fills: Fills, begins: Begins) -> bool:
        """Whether a fork's fills hold its own token, or end where that is the end; else they cut the first ones."""
        eog = self._tokens.eog_id
        for canvas, fill, begin in zip(self._attempts[0].canvases, fills, begins, strict=True):
            if list(begin) != [*canvas.tokens(), eog]:
                same = self._tokens.decode_bytes(begin[:-1])[len(canvas.gap.prefix) :]
                return begin[-1] == eog or not same.startswith(fill.encode())
        return True

    def _likelihood(self, fills: Fills) -> float:
        first = self._attempts[0]
        prefixes = (canvas.gap.prefix.decode() for canvas in first.canvases)
        texts = [prefix + fill for prefix, fill in zip(prefixes, fills, strict=True)]
        return first.model.likelihood([self._tokens.encode(text) for text in texts])

    def _sure(self, fills: Fills, canvases: Sequence[Canvas], candidate: int) -> tuple[tuple[float, ...], ...]:
        own = (canvas for canvas in canvases if canvas.candidate == candidate)
        return tuple(
            confidence.of_lines(
                fill, canvas.tokens(), canvas.log_probs, canvas.gap.prefix, self._tokens, self._calibration
            )
            for fill, canvas in zip(fills, own, strict=True)
        )

    def _turns(
        self, attempt: Attempt, cancelled: Callable[[], bool], deadline: float | None
    ) -> Generator[Snapshot, None, LoopEnd]:
        """Run one loop; snapshots show the first candidate, in its final state while the forks are denoised."""
        loop = denoise(
            attempt.model,
            attempt.canvases,
            attempt.constraint,
            self._tokens,
            self._options,
            cancelled=cancelled,
            deadline=deadline,
        )
        left = self._shown

        def show(seen: Snapshot) -> Snapshot:
            waited = seen.constraint_ms + (left.constraint_ms if left else 0.0)
            self._shown = replace_fields(left, step=left.step + seen.step) if left else seen
            checks = self.checks
            written = tuple(canvas.written(self._tokens) or "" for canvas in self._attempts[0].canvases)
            lines = tuple(map(_whole_lines, written))
            if lines != self._lines:
                self._lines, self._sure_of_lines = lines, self._sure(lines, self._attempts[0].canvases, 0)
            return replace_fields(
                self._shown,
                written=written,
                confidence=self._sure_of_lines,
                nfe=self.passes,
                corrections=self.corrections,
                vetoes=checks.vetoes,
                deferrals=checks.deferrals,
                constraint_ms=waited,
            )

        with closing(attempt.constraint), closing(loop):
            ending = yield from shown(loop, show)
        for fills, candidate in attempt.constraint.found.items():
            self.confidence.setdefault(fills, self._sure(fills, attempt.canvases, candidate))
        return ending


def _whole_lines(text: str) -> str:
    """The text up to its last newline; "" without one."""
    return text[: text.rfind("\n") + 1]
