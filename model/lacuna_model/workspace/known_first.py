"""Known names first: a name that nothing declares gives way to the next candidates that lead to a known one.

It stands before the constraint of a fill, as a second and soft judge of the same candidates. Where a token ends a name
that is nowhere, the fill goes back to the beginning of the name, which is written again from tokens that lead to a
known name, each at most ``MARGIN`` less likely than the one that was read. Where none leads on, the token before gives
way, too. At last the model's own name stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken, TokenText, Verdict
from lacuna_model.workspace.known_names import KnownNames

# By how much (nats) the log-probability of a token may be lower than that of the token that it replaces.
MARGIN = 5.0
# The names of a fill that are written again at most.
MAX_AGAIN = 6
# How often such a name goes back by a token.
MAX_STEPS = 8


@dataclass(slots=True)
class _Again:
    """A name that is written again: where it begins, in tokens and in characters, and what its first token leads with.

    ``refused`` are, by the tokens before them, those behind which no token leads on, ``steps`` their number.
    """

    before: tuple[int, ...]
    start: int
    lead: bytes
    refused: dict[tuple[int, ...], set[int]] = field(default_factory=dict)
    steps: int = 0


@dataclass(slots=True)
class _Names:
    """The names of one gap: the texts before those that were written again, and the one that is.

    Those in the first ``given`` tokens are not judged. An end behind those of ``refused`` was refused once, so that
    they are judged with the next token.
    """

    judge: KnownNames
    given: int
    tokens: TokenText
    tried: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    again: _Again | None = None

    def text(self, fill: FillSoFar, written: Sequence[int]) -> str:
        """The text of some tokens of a fill, without what is healed."""
        return self.tokens.decode_bytes(written)[len(fill.prefix) :].decode(errors="ignore")

    def start(self, fill: FillSoFar, written: Sequence[int], text: str, since: int) -> int | None:
        """Where a name begins that ends behind ``since``, is nowhere, and was not written again yet."""
        if len(self.tried) >= MAX_AGAIN or len(written) <= self.given:
            return None
        start = self.judge.nowhere(text, max(since, len(self.text(fill, written[: self.given]))))
        return start if start is not None and text[: max(start, 0)] not in self.tried else None

    def begin_again(self, fill: FillSoFar, written: tuple[int, ...]) -> _Again | None:
        """Begin a name again if the last of some tokens ends one that is surely nowhere."""
        text, since = self.text(fill, written), len(self.text(fill, written[:-1]))
        start = self.start(fill, written, text, since)
        if start is None:
            return None
        head = text[: max(start, 0)]
        most, before = len(fill.prefix) + len(head.encode()), 0
        for place, token in enumerate(written):
            data = self.tokens.token_bytes(token)
            if before + len(data) > most:
                self.tried.add(head)
                self.again = _Again(written[:place], start, data[: max(most - before, 0)])
                return self.again
            before += len(data)
        return None

    def leading(self, fill: FillSoFar, again: _Again, before: tuple[int, ...], token: int) -> str | None:
        """The text of a fill with one more token, if that leads to a known name; else None."""
        ends = token == self.tokens.eog_id
        if before == again.before and (ends or not self.tokens.token_bytes(token).startswith(again.lead)):
            return None
        text = self.judge.ended(self.text(fill, before)) if ends else self.text(fill, (*before, token))
        return text if self.judge.leads(text, again.start) else None


class KnownFirst(Constraint):
    """A constraint that asks, before another one does, whether names exist."""

    def __init__(
        self, inner: Constraint, judges: Sequence[KnownNames], given: Sequence[int], tokens: TokenText
    ) -> None:
        """``judges`` and the numbers of tokens that are ``given`` are by gap."""
        super().__init__(tokens)
        self._inner, self.stats, self.active = inner, inner.stats, inner.active
        self._gaps = [_Names(judge, most, tokens) for judge, most in zip(judges, given, strict=True)]

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        """What the other constraint takes, up to a name that is nowhere; such a name is written again."""
        fill, own, read = fills[gap], self._gaps[gap], run.tokens
        for place, token in enumerate(read):
            before, again = (*fill.tokens, *read[:place]), own.again
            if again is not None and before[: len(again.before)] == again.before:
                changed = self._written_again(gap, fills, run, place, again)
                if changed is not None:
                    return changed
            elif token != self._tokens.eog_id and (again := own.begin_again(fill, (*before, token))) is not None:
                return self._back_to(len(again.before), gap, fills, run)
        return self._inner.take(gap, fills, run)

    def _back_to(self, kept: int, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        """Go back by tokens of the fill; those of the run alone are read again at once."""
        return Taken(kept) if kept < len(fills[gap].tokens) else self.take(gap, fills, run)

    def _written_again(self, gap: int, fills: Sequence[FillSoFar], run: Run, place: int, again: _Again) -> Taken | None:
        """What is done with a token of a name that is written again; None where it is taken like any other.

        Where no token leads on, the one before gives way, too; at last the model's own name stands.
        """
        fill, own = fills[gap], self._gaps[gap]
        before, least = (*fill.tokens, *run.tokens[:place]), run.logp[place, 0] - MARGIN
        for token, log_prob in zip(run.ids[place].tolist(), run.logp[place].tolist(), strict=True):
            if log_prob < least or token in again.refused.get(before, ()):
                continue
            if (text := own.leading(fill, again, before, token)) is None:
                continue
            taken = None
            if token != run.ids[place, 0]:
                other = Run(run.ids[: place + 1].copy(), run.logp[: place + 1].copy())
                other.put_first(place, token)
                taken = self._inner.take(gap, fills, other)
                if taken.kept <= len(before):
                    continue  # the other constraint takes another one
                taken = Taken(len(before), (token, *taken.write), taken.ends, taken.stuck)
            if own.judge.ends(text, again.start):
                own.judge.wrote_instead(text[: max(again.start, 0)])
                own.again = None
            return taken
        if before == again.before:
            own.again = None
            return None
        again.refused.setdefault(before[:-1], set()).add(before[-1])
        again.steps += 1
        if again.steps <= MAX_STEPS:
            return self._back_to(len(before) - 1, gap, fills, run)
        own.again = None
        return self._back_to(len(again.before), gap, fills, run)

    def may_end(self, gap: int, fill: FillSoFar) -> bool:
        """As the other constraint says; False where a name may have to be written again."""
        own, text = self._gaps[gap], self._gaps[gap].text(fill, fill.tokens)
        start = own.start(fill, fill.tokens, own.judge.ended(text), 0)
        if start is not None and text[: max(start, 0)] not in own.refused:
            own.refused.add(text[: max(start, 0)])
            return False
        return self._inner.may_end(gap, fill)

    def verdict(self, fills: Sequence[FillSoFar], *, late: bool) -> Verdict:
        """That of the other constraint."""
        return self._inner.verdict(fills, late=late)
