"""The rule: read while the grammar can read, prove at line ends and at the end, go back where there is no proof.

Of each gap the run of known tokens from the left counts. A token is taken if it can be read; where it ends a line,
something must complete the fill. If nothing does for some lines, the fill goes back to the last place where something
does, and the token that followed it is forbidden there: the model's next best one is tried. An end-of-gap is a token
like others: it may be taken where only closers that are due are missing. Tokens further on are guesses, which are read
like others once the run reaches them. What is decided is a function of the text and of the proposed tokens.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile

from lacuna_model.core import work
from lacuna_model.core.constraint import (
    Commit,
    ConstraintStats,
    GapView,
    Remask,
    TokenText,
    Verdict,
    changed,
    fill_tokens,
)
from lacuna_model.core.params import Region
from lacuna_model.core.work import Clock, OverBudgetError
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import TOO_LONG, UnparsableError
from lacuna_model.syntax.proving.gap import ProvedGap, Tokens, takes_lines
from lacuna_model.syntax.proving.judge import Judge
from lacuna_model.syntax.proving.merges import one_side
from lacuna_model.syntax.proving.stand_ins import Others
from lacuna_model.syntax.readable import Reading
from lacuna_model.syntax.region.region_rules import RegionRules, in_line

MAX_BACK = 8  # times that one gap goes back
MAX_FORBIDDEN = 2  # tokens at one place, before it is taken for a corner; an indentation is one with the second word
MAX_COLUMNS = 4  # indentations at one place at which no next token can be read
MAX_ASTRAY = 4  # times that it goes back to the last proved place, before the first word of the line is to blame
MAX_MASKED = 64  # tokens of one gap that are masked again where there is no proof
MAX_ON = 2  # times that a fill goes on where the model would end it
MAX_MISLED = 2  # times that the last line is written otherwise, before the next line begins as a proof does
MAX_BEYOND = 2  # lines behind the place where the model, or a stop rule, would have ended a fill
MAX_UNPROVED = 2  # line ends in a row without a proof: none within the budget does not mean that there is none
GRACE_SECONDS = 0.3  # of real time, for ``finish`` after the deadline
CALL_SECONDS = 1.0  # of work, after which a call ends, since all other requests wait for it
NO_FILL = "no valid fill was found within the budget; the text stays as it was"


class SyntaxConstraint:
    """Keeps a file syntactically valid, and the rules of each region, while its gaps are denoised.

    Gaps that are not filled yet hold stand-ins. ``strict``: errors of the text may not stay. ``deadline`` is a
    ``time.monotonic`` instant.
    """

    active = True

    def __init__(
        self,
        text: bytes,
        regions: Sequence[Region],
        language: Language | None,
        tokens: TokenText,
        *,
        strict: bool = False,
        deadline: float | None = None,
    ) -> None:
        self.stats = ConstraintStats()
        if language is not None and not strict:
            text, regions = one_side(text, regions)
        self._text, self._regions, self._language, self._tokens = text, regions, language, tokens
        self._clock, self._strict = Clock(deadline), strict
        self._gaps = [self._gap(gap) for gap in range(len(regions))]
        self._others = Others(text, regions, language, self._clock)
        self._is_new = True  # no question was asked yet

    def _gap(self, gap: int) -> ProvedGap:
        """One gap, whose judge and reading see the other gaps as they are when these are made."""
        until = self._regions[gap + 1].start if gap + 1 < len(self._regions) else len(self._text)
        rules = RegionRules(self._regions[gap], self._text[self._regions[gap].end : until])
        whole = takes_lines(self._text[: self._regions[gap].start], self._text[self._regions[gap].end :])
        if self._language is None:
            return ProvedGap(self._tokens, rules, None, None, whole_lines=whole)
        judge, reading = partial(self._judge, gap), partial(self._reading, gap)
        return ProvedGap(self._tokens, rules, judge, reading, whole_lines=whole)

    def _judge(self, gap: int) -> Judge | None:
        """The judge of a gap's fills; None where the open gaps are to blame for errors in any case."""
        assert self._language is not None
        if self._others.leave_errors and self._are_others_open(gap):
            return None
        text, place = self._others.around(gap)
        is_line, strict = in_line(self._regions), self._strict or self._others.are_sound
        return Judge(text, place, self._language, self._clock, self.stats, in_line=is_line, strict=strict)

    def _are_others_open(self, gap: int) -> bool:
        return not all(own.ended for other, own in enumerate(self._gaps) if other != gap)

    def _reading(self, gap: int) -> Reading | None:
        """The reading of a gap's fill; None as long as an earlier gap is open, and so the text before is not known."""
        assert self._language is not None
        if not all(own.ended for own in self._gaps[:gap]):
            return None
        text, (start, _) = self._others.around(gap)
        return Reading(text[:start], self._language)

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """The proposed tokens that are taken, others in place of refused ones, and what is masked again.

        None if it takes too long to tell. Raises UnparsableError if that is so whatever the fills are.
        """
        with self._bounded():
            return self._admitted(gaps, proposal)
        return ()

    @contextmanager
    def _bounded(self, *, least: float = 0.0) -> Iterator[None]:
        """Within, a question is answered in the time that the request has; what takes longer is left without an answer.

        Where that is the first question, which took most of the time alone, the text is to blame: UnparsableError.
        """
        began = time.thread_time_ns()
        try:
            with work.bounded(least=least):
                yield
        except OverBudgetError as error:
            if self._is_new and time.thread_time_ns() - began > work.AT_ONCE_NS // 2:
                raise UnparsableError(TOO_LONG) from error
        finally:
            self._is_new = False

    def _admitted(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        self._clock.begin(CALL_SECONDS)
        self._see(gaps)
        own: dict[int, list[Commit]] = {}
        for commit in proposal:
            own.setdefault(commit.gap, []).append(commit)
        admitted = [one for gap, commits in own.items() for one in self._admit(gap, gaps[gap], commits)]
        self.stats.deferrals += not admitted
        return admitted

    def _admit(self, gap: int, view: GapView, commits: Sequence[Commit]) -> Iterator[Commit | Remask]:
        self._gaps[gap].prefix = view.prefix
        by_slot = {commit.slot: commit for commit in commits}
        guesses, first = dict(by_slot), _frontier(view)
        if 0 <= first < len(view.ids) and all(commit.token == self._tokens.eog_id for commit in commits):
            by_slot.setdefault(first, Commit(gap, first, int(view.ids[first][0])))  # an end is no guess: go on instead
        while (slot := _frontier(view)) in by_slot:
            commit = by_slot.pop(slot)
            guesses.pop(slot, None)
            if changes := self._refused_end(gap, view, commit):
                yield from changes
                return
            taken = self._take(gap, view, commit)
            if taken is None:
                yield from self._stuck(gap, view)
                return
            yield taken
            if taken.token == self._tokens.eog_id:
                self._end(gap, view)
                return
            known, view = fill_tokens(view, self._tokens.eog_id), changed(view, [taken])
            unread = self._unread(gap, view, len(known) + 1)
            changes = [unread] if unread is not None else self._unproved(gap, view) or self._beyond(gap, view)
            yield from (changes := changes or self._out_of_budget(gap, view))
            if changes or taken.token != commit.token:
                return
        yield from (guess for guess in guesses.values() if guess.token != self._tokens.eog_id)

    def _unread(self, gap: int, view: GapView, known: int) -> Remask | None:
        """The remask of guesses behind the ``known`` tokens that cannot be read now that the run has reached them."""
        own, run = self._gaps[gap], fill_tokens(view, self._tokens.eog_id)
        if len(run) == known or own.reads(run):
            return None
        first = next(end for end in range(known, len(run)) if not own.reads(run[: end + 1]))
        return Remask(gap, first - len(view.done))

    def _end(self, gap: int, view: GapView) -> None:
        """Take the fill of a gap that ends with its known tokens, if it may end there."""
        text = self._gaps[gap].text(fill_tokens(view, self._tokens.eog_id))
        if (ending := self._gaps[gap].ending(text)) is not None:
            self._settle(gap, text + ending)

    def _see(self, gaps: Sequence[GapView]) -> None:
        """Note what is written in the gaps, and take the fills of those that are closed since the last call."""
        for gap, view in enumerate(gaps):
            own = self._gaps[gap]
            own.prefix = view.prefix
            self._others.written[gap] = own.text(fill_tokens(view, self._tokens.eog_id))
            if view.closed and not own.ended:
                self._end(gap, view)

    def _may_end(self, gap: int, text: bytes) -> bool:
        """Whether a text may be the fill of a gap, if need be with other texts in the gaps that are not filled yet."""
        own = self._gaps[gap]
        if self._others.leave_errors:
            self._choose_again(gap, text, ends=True)
        return own.ending(text) is not None or (
            self._choose_again(gap, text, ends=True) and own.ending(text) is not None
        )

    def _is_proved(self, gap: int, run: Tokens) -> bool:
        """Whether something completes a beginning, if need be with other texts in the gaps that are not filled yet."""
        own = self._gaps[gap]
        return own.is_proved(run) or (self._choose_again(gap, own.text(run), ends=False) and own.is_proved(run))

    def _choose_again(self, gap: int, text: bytes, *, ends: bool) -> bool:
        """Find other texts for the open gaps beside one that begins with a text, or is it; returns whether it did."""
        found = self._others.choose_again(gap, text, [own.ended for own in self._gaps], ends=ends)
        for own in self._gaps if found else ():
            own.forget()
        return found

    def _take(self, gap: int, view: GapView, commit: Commit) -> Commit | None:
        """The commit with the first token that may follow, the proposed one or the best of the others."""
        slot = commit.slot
        best = [int(one) for one in view.ids[slot]] if slot < len(view.ids) else []
        run = self._run_of(view)
        for token in dict.fromkeys((commit.token, *best)):
            if self._gaps[gap].leaves_column(run, token):
                return None
            if self._may_follow(gap, view, token):
                self.stats.swaps += token != commit.token
                return Commit(gap, slot, token)
            self.stats.vetoes += 1
        return None

    def _may_follow(self, gap: int, view: GapView, token: int) -> bool:
        own, run = self._gaps[gap], self._run_of(view)
        if token in own.forbidden.get(run, ()):
            return False
        if token == self._tokens.eog_id or own.leaves((*run, token)):
            return self._may_end(gap, own.text(run if token == self._tokens.eog_id else (*run, token)))
        return own.reads((*run, token))

    def _refused_end(self, gap: int, view: GapView, commit: Commit) -> Sequence[Commit | Remask]:
        """What is done where the model would end a fill that may not end there; empty where it goes on.

        Without a proof it goes back to the last one. Else it goes on with the next best token, some times. If that
        leads nowhere, the fill is what the model had written, up to the last place where it may end; if there is none,
        the end of its last line is written otherwise, then more and more of it.
        """
        own, run = self._gaps[gap], self._run_of(view)
        ends = commit.token == self._tokens.eog_id or own.leaves((*run, commit.token))
        if not ends or self._may_follow(gap, view, commit.token):
            return ()
        if not self._is_proved(gap, run):
            return self._to_last_proved(gap, view, run)
        own.refuse_end(own.text(run))
        return self._ended_early(gap, view) if own.times_on > MAX_ON else ()

    def _beyond(self, gap: int, view: GapView) -> Sequence[Commit | Remask]:
        """What is done where a fill has gone on too far behind the place where it would have ended."""
        own, run = self._gaps[gap], self._run_of(view)
        text = own.text(run)
        if own.wanted is None or len(text) <= len(own.wanted) or b"\n" not in self._tokens.token_bytes(run[-1]):
            return ()
        if self._may_end(gap, text):
            own.wanted = None
            return ()
        most = MAX_BEYOND if own.times_on <= MAX_ON else 0
        return self._ended_early(gap, view) if text.count(b"\n", len(own.wanted)) > most else ()

    def _ended_early(self, gap: int, view: GapView) -> Sequence[Commit | Remask]:
        """The fill as it would have ended, up to where it may end; else its last tokens are masked again.

        Beside open gaps it stays as it is: what these will hold may be what it lacks.
        """
        own, run = self._gaps[gap], self._run_of(view)
        wanted, own.wanted = own.text(run) if own.wanted is None else own.wanted, None
        if changes := list(self._cut(gap, view, wanted, anywhere=False)):
            return changes
        if self._are_others_open(gap) and own.takes(wanted) and (changes := [*self._end_with(gap, view, wanted)]):
            return changes
        if own.times_misled >= MAX_MISLED and (changes := [*self._begun_anew(gap, view, wanted)]):
            return changes
        back = self._back_to(gap, view, own.misled_from(run, wanted), run)
        return [back] if back is not None else self._last_resort(gap, view, wanted)

    def _last_resort(self, gap: int, view: GapView, text: bytes) -> Sequence[Commit | Remask]:
        """What is done with a text where the fill has gone back too often."""
        return [*self._cut(gap, view, text, anywhere=True)] or [*self._begun_anew(gap, view, text)]

    def _begun_anew(self, gap: int, view: GapView, text: bytes) -> Iterator[Commit | Remask]:
        """Write, once, the first words of a proof behind the line that lacks least to be a fill.

        The line is one of those that the model had written first, else of a ``text``.
        """
        own = self._gaps[gap]
        tried = [] if own.is_begun_anew else dict.fromkeys((*own.left[:1], text))
        own.is_begun_anew = True
        begun = next((one for one in map(own.begun_anew, tried) if one is not None), None)
        if begun is not None:
            own.left.append(own.text(self._run_of(view)))
            own.num_unproved = 0
            yield from self._write(gap, view, begun, ends=False)

    def _out_of_budget(self, gap: int, view: GapView) -> Sequence[Commit | Remask]:
        """What is done where the budget ends a fill of which no beginning may be the fill: it is written otherwise."""
        own, run = self._gaps[gap], self._run_of(view)
        text = own.text(run)
        if view.budget or len(run) < len(view.done) + len(view.slots) or self._are_others_open(gap):
            return ()
        if self._may_end(gap, text) or own.cut(text, anywhere=False) is not None:
            return ()
        own.refuse_end(text)
        return self._ended_early(gap, view)

    def _run_of(self, view: GapView) -> Tokens:
        return tuple(fill_tokens(view, self._tokens.eog_id))

    def _unproved(self, gap: int, view: GapView) -> Sequence[Commit | Remask]:
        """What is done where the run of known tokens ends a line, and no proof was found for the last few."""
        own, run = self._gaps[gap], self._run_of(view)
        if b"\n" not in self._tokens.token_bytes(run[-1]) or own.leaves(run):
            return ()
        if self._is_proved(gap, run):
            own.proved, own.num_unproved = run, 0
            return ()
        own.num_unproved += 1
        return self._to_last_proved(gap, view, run) if own.num_unproved > MAX_UNPROVED else ()

    def _to_last_proved(self, gap: int, view: GapView, run: Tokens) -> Sequence[Commit | Remask]:
        """Back to the last place with a proof, or the end of the fill, if what follows there begins like the suffix."""
        own, place = self._gaps[gap], self._last_proved(gap, view, run)
        text, kept = own.text(run), own.text(run[:place])
        if own.ends_before_suffix(text, len(kept)) and (changes := [*self._end_with(gap, view, kept)]):
            return changes
        own.times_unproved += 1
        if own.times_unproved == MAX_ASTRAY:
            place = max(own.line_start(run[:place]), len(view.done))
        back = self._back_to(gap, view, place, run)
        return [back] if back is not None else [*self._begun_anew(gap, view, text)]

    def _last_proved(self, gap: int, view: GapView, run: Tokens) -> int:
        """How many tokens of a run without a proof have one: more than the known ones, if need be fewer."""
        own, least = self._gaps[gap], len(view.done)
        known = own.proved if run[: len(own.proved)] == own.proved else ()
        low, high = max(len(known), least), len(run)
        while high - low > 1:
            middle = (low + high) // 2
            if own.is_proved(run[:middle]):
                low = middle
            else:
                high = middle
        own.proved = run[:low]
        return low

    def _stuck(self, gap: int, view: GapView) -> Sequence[Commit | Remask]:
        """What is done where no token may follow: the end is found further up, or the last token is masked again."""
        own, run = self._gaps[gap], self._run_of(view)
        if own.wanted is not None:
            return self._ended_early(gap, view)
        back = self._back_to(gap, view, len(run) - 1, run, most=MAX_COLUMNS if own.begins_line(run) else MAX_FORBIDDEN)
        return [back] if back is not None else self._last_resort(gap, view, own.text(run))

    def _cut(self, gap: int, view: GapView, kept: bytes, *, anywhere: bool) -> Iterator[Commit | Remask]:
        """End a fill with the longest beginning of a part of it that may be one; nothing where there is none."""
        text = self._gaps[gap].cut(kept, anywhere=anywhere)
        if text is not None:
            yield from self._end_with(gap, view, text)

    def _end_with(self, gap: int, view: GapView, text: bytes) -> Iterator[Commit | Remask]:
        """End a fill with a text; nothing where its tokens do not fit."""
        if changes := [*self._write(gap, view, text, ends=True)]:
            yield from changes
            self._settle(gap, text)

    def _write(self, gap: int, view: GapView, text: bytes, *, ends: bool) -> Iterator[Commit | Remask]:
        """Write a text, or end a fill with it; nothing where its tokens do not fit."""
        own, run, done = self._gaps[gap], self._run_of(view), len(view.done)
        tokens = self._tokens.encode((own.prefix + text).decode())
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(run, tokens, strict=False)))
        if same < done or len(tokens) >= done + len(view.slots):
            return
        if same < len(run):
            yield Remask(gap, same - done)
        for place, token in enumerate([*tokens, self._tokens.eog_id] if ends else tokens):
            if place >= same:
                yield Commit(gap, place - done, token)

    def _back_to(self, gap: int, view: GapView, place: int, run: Tokens, most: int = 0) -> Remask | None:
        """The remask of the tokens from a place on, whose first one is forbidden there from now on.

        A place where others were forbidden before, ``most`` of them, is a corner: the token that leads to it is
        forbidden instead.
        """
        own, least = self._gaps[gap], len(view.done)
        while place > least and len(own.forbidden.get(run[:place], ())) >= (most or _most_forbidden(own, run[:place])):
            place, most = place - 1, 0
        own.times_back += 1
        own.left.append(own.text(run))
        own.num_masked += len(run) - place if own.num_unproved else 0
        own.num_unproved, own.wanted = 0, None
        if not least <= place < len(run) or own.times_back > MAX_BACK or own.num_masked > MAX_MASKED:
            return None
        self.stats.vetoes += 1
        own.forbidden.setdefault(run[:place], set()).add(run[place])
        return Remask(gap, place - least)

    def confirms(self, gap: int, view: GapView) -> bool:
        """Whether a closed fill of a gap is valid as it is; False if it takes too long to tell."""
        with self._bounded():
            return self._confirms(gap, view)
        return False

    def _confirms(self, gap: int, view: GapView) -> bool:
        self._clock.begin(CALL_SECONDS)
        own = self._gaps[gap]
        own.prefix = view.prefix
        text = own.text(fill_tokens(view, self._tokens.eog_id))
        if not self._may_end(gap, text) or own.ending(text) != b"":
            if own.wanted is None:
                own.refuse_end(text)
            return False
        self._settle(gap, text)
        return True

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The final verdict: each fill with the closers that are due, else what may be delivered of it.

        With ``truncate`` an unfinished fill ends at a line.
        """
        with self._bounded(least=GRACE_SECONDS):
            return self._finished(gaps, truncate=truncate)
        return Verdict("no_valid_fill", None, NO_FILL)

    def _finished(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        self._clock.begin(CALL_SECONDS, least=GRACE_SECONDS)
        self._see(gaps)
        if len(gaps) > 1 and all(view.closed for view in gaps) and self._are_valid(self._others.written):
            return Verdict("ok", tuple(text.decode() for text in self._others.written))
        for gap, view in enumerate(gaps):
            own = self._gaps[gap]
            run = fill_tokens(view, self._tokens.eog_id)
            found = next((text for text in self._endings(gap, run, view, truncate) if self._is_final(own, text)), None)
            if found is None:
                return Verdict("no_valid_fill", None, NO_FILL)
            self._settle(gap, found)
        if not self._others.are_valid_together(self._others.fills, strict=self._strict):
            return Verdict("no_valid_fill", None, NO_FILL)
        return Verdict("ok", tuple(self._others.fills))

    def _are_valid(self, fills: Sequence[bytes]) -> bool:
        """Whether the fills of all gaps are valid as they are."""
        if not all(own.takes(fill) for own, fill in zip(self._gaps, fills, strict=True)):
            return False
        return self._others.are_valid_together([fill.decode() for fill in fills], strict=self._strict)

    def _endings(self, gap: int, run: Sequence[int], view: GapView, truncate: bool) -> Iterator[bytes]:
        """The texts that may be delivered for a gap, the longest first."""
        own = self._gaps[gap]
        text = own.text(run)
        if (view.closed or not truncate) and self._may_end(gap, text):
            yield text + (own.ending(text) or b"")
        if not truncate:
            written = dict.fromkeys(one for one in (own.wanted, text, *own.left[:1]) if one is not None)
            kept = (own.cut(one, anywhere=True) for one in written)
            yield from sorted((one for one in kept if one is not None), key=len, reverse=True)
        yield from own.cuts(run, at_lines=truncate)
        left = (own.cut(one, anywhere=True) for one in dict.fromkeys(reversed(own.left)))
        yield from (one for one in left if one is not None)

    def _is_final(self, own: ProvedGap, text: bytes) -> bool:
        return own.judge is None or own.judge.final(text)

    def _settle(self, gap: int, text: bytes) -> None:
        """Take the text of a filled gap; the others are judged anew where it differs."""
        self._gaps[gap].ended = True
        if text.decode() == self._others.fills[gap] and not self._others.leave_errors:
            return
        self._others.fills[gap] = text.decode()
        for other, one in enumerate(self._gaps):
            if other != gap:
                one.forget()

    def close(self) -> None:
        """End the call that runs."""
        self._clock.stop()


def _most_forbidden(own: ProvedGap, run: Tokens) -> int:
    return 1 if own.begins_line(run) else MAX_FORBIDDEN


def _frontier(view: GapView) -> int:
    """The first open slot; -1 for none."""
    return view.slots.index(None) if None in view.slots else -1
