"""The rule: read while the grammar can read, prove at line ends and at the end, go back where there is no proof.

A token is taken if it can be read; where it ends a line, something must complete the fill. If nothing does for some
lines, the fill goes back to the last place where something does, and the token that followed it is forbidden there: the
model's next best one is tried. An end-of-gap is a token like others: it may be taken where only closers that are due
are missing. What is decided is a function of the text and of the tokens that were read, one by one.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile

from lacuna_model.core import work
from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken, TokenText, Verdict
from lacuna_model.core.params import Region
from lacuna_model.core.work import Clock, OverBudgetError
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import TOO_LONG, UnparsableError
from lacuna_model.syntax.gap import ProvedGap, Tokens, takes_lines
from lacuna_model.syntax.judge import Judge
from lacuna_model.syntax.readable import Reading
from lacuna_model.syntax.region import RegionRules, in_line
from lacuna_model.syntax.stand_ins import Others, no_fill, one_side

MAX_BACK = 8  # times that one gap goes back
MAX_FORBIDDEN = 2  # tokens at one place, before it is taken for a corner; an indentation is one with the second word
MAX_COLUMNS = 4  # indentations at one place at which no next token can be read
MAX_ASTRAY = 4  # times that it goes back to the last proved place, before the first word of the line is to blame
MAX_ON = 2  # times that a fill goes on where the model would end it
MAX_MISLED = 2  # times that the last line is written otherwise, before the next line begins as a proof does
MAX_BEYOND = 2  # lines behind the place where the model, or a stop rule, would have ended a fill
MAX_UNPROVED = 2  # line ends in a row without a proof: none within the budget does not mean that there is none
GRACE_SECONDS = 0.3  # of real time, for the verdict after the deadline
CALL_SECONDS = 1.0  # of work, after which a call ends, since all other requests wait for it
WORD = re.compile(rb"\w")


class SyntaxConstraint(Constraint):
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
        lines_above: int = 0,
    ) -> None:
        """The text has so many ``lines_above`` it in its file."""
        super().__init__(tokens)
        self._given, self._lines_above = (text, regions), lines_above
        if language is not None and not strict:
            text, regions = one_side(text, regions)
        self._text, self._regions, self._language = text, regions, language
        self._clock, self._strict = Clock(deadline), strict
        self._gaps = [self._gap(gap) for gap in range(len(regions))]
        self._others = Others(text, regions, language, self._clock)
        self._is_new = True  # no question was asked yet
        self._unfilled: int | None = None  # the gap for which there is no valid fill, as the verdict found

    def _gap(self, gap: int) -> ProvedGap:
        """One gap, whose judge and reading see the other gaps as they are when these are made."""
        until = self._regions[gap + 1].start if gap + 1 < len(self._regions) else len(self._text)
        start, end = self._regions[gap].start, self._regions[gap].end
        rules = RegionRules(self._regions[gap], self._text[end:until])
        whole = takes_lines(self._text[:start], self._text[end:])
        judge, reading = partial(self._judge, gap), partial(self._reading, gap)
        return ProvedGap(gap, self._tokens, rules, judge, reading, whole_lines=whole)

    def _judge(self, gap: int) -> Judge | None:
        """The judge of a gap's fills; None without a grammar, or where open gaps are to blame in any case."""
        if self._language is None or (self._others.leave_errors and self._are_others_open(self._gaps[gap])):
            return None
        text, place = self._others.around(gap)
        is_line, strict = in_line(self._regions), self._strict or self._others.are_sound
        return Judge(text, place, self._language, self._clock, in_line=is_line, strict=strict)

    def _are_others_open(self, own: ProvedGap) -> bool:
        return not all(other.ended for other in self._gaps if other is not own)

    def _reading(self, gap: int) -> Reading | None:
        """The reading of a gap's fill; None as long as an earlier gap is open, and so the text before is not known."""
        if self._language is None or not all(own.ended for own in self._gaps[:gap]):
            return None
        text, (start, _) = self._others.around(gap)
        return Reading(text[:start], self._language)

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        """What becomes of a fill: the run as far as it can be read and proved, other tokens, or fewer of its own.

        It is stuck if it takes too long to tell. Raises UnparsableError if that is so whatever the fills are.
        """
        with self._bounded():
            self._clock.begin(CALL_SECONDS)
            self._see(fills)
            taken = self._take(self._gaps[gap], fills[gap].tokens, run)
            self.stats.deferrals += taken.stuck
            return taken
        return Taken(len(fills[gap].tokens), stuck=True)

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

    def _take(self, own: ProvedGap, before: Tokens, run: Run) -> Taken:
        for place, token in enumerate(run.tokens):
            changed = self._refused_end(own, before, token)
            if changed is not None:
                return changed
            next_one = self._follower(own, before, run, place)
            if next_one is None:
                return self._stuck(own, before) or Taken(len(before), stuck=True)
            if next_one == self._tokens.eog_id:
                self._end(own, before)
                return Taken(len(before), ends=True)
            now = (*before, next_one)
            changed = self._unproved(own, now) or self._beyond(own, now) or self._out_of_budget(own, now)
            if next_one != token and (changed is None or changed.kept == len(now)):
                write, ends = ((), False) if changed is None else (changed.write, changed.ends)
                return Taken(len(before), (next_one, *write), ends=ends)
            if changed is not None:
                return changed
            before = now
        return Taken(len(before))

    def _end(self, own: ProvedGap, run: Tokens) -> None:
        """Take the fill of a gap that ends with its known tokens, if it may end there."""
        text = own.text(run)
        if (closers := own.closers_after(text)) is not None:
            self._take_text(own, text + closers)

    def _see(self, fills: Sequence[FillSoFar]) -> None:
        """Note what is written in the gaps, and take the fills that have ended since the last call."""
        for own, fill in zip(self._gaps, fills, strict=True):
            own.prefix, own.most = fill.prefix, fill.most
            self._others.written[own.index] = own.text(fill.tokens)
            if fill.ended and not own.ended:
                self._end(own, fill.tokens)

    def _may_end(self, own: ProvedGap, text: bytes) -> bool:
        """Whether a text may be the fill of a gap, if need be with other texts in the gaps that are not filled yet."""
        if self._others.leave_errors:
            self._choose_again(own, text, ends=True)
        return own.closers_after(text) is not None or (
            self._choose_again(own, text, ends=True) and own.closers_after(text) is not None
        )

    def _is_proved(self, own: ProvedGap, run: Tokens) -> bool:
        """Whether something completes a beginning, if need be with other texts in the gaps that are not filled yet."""
        return own.is_proved(run) or (self._choose_again(own, own.text(run), ends=False) and own.is_proved(run))

    def _choose_again(self, own: ProvedGap, text: bytes, *, ends: bool) -> bool:
        """Find other texts for the open gaps beside one that begins with a text, or is it; returns whether it did."""
        found = self._others.choose_again(own.index, text, [one.ended for one in self._gaps], ends=ends)
        for one in self._gaps if found else ():
            one.forget()
        return found

    def _follower(self, own: ProvedGap, before: Tokens, run: Run, place: int) -> int | None:
        """The first token that may follow, the one that was read at a place of a run or the best of the others."""
        for token in dict.fromkeys(run.ids[place].tolist()):
            if own.leaves_column(before, token):
                return None
            if self._may_follow(own, before, token):
                return int(token)
            self.stats.vetoes += 1
        return None

    def _may_follow(self, own: ProvedGap, run: Tokens, token: int) -> bool:
        if token in own.forbidden.get(run, ()):
            return False
        if token == self._tokens.eog_id or own.leaves((*run, token)):
            return self._may_end(own, own.text(run if token == self._tokens.eog_id else (*run, token)))
        return own.reads((*run, token))

    def _refused_end(self, own: ProvedGap, run: Tokens, token: int) -> Taken | None:
        """What is done where the model would end a fill that may not end there; None where it goes on.

        Without a proof it goes back to the last one. Else it goes on with the next best token, some times. If that
        leads nowhere, the fill is what the model had written, up to the last place where it may end; if there is none,
        the end of its last line is written otherwise, then more and more of it.
        """
        ends = token == self._tokens.eog_id or own.leaves((*run, token))
        if not ends or self._may_follow(own, run, token):
            return None
        if not self._is_proved(own, run):
            return self._to_last_proved(own, run)
        own.refuse_end(own.text(run))
        return self._ended_early(own, run) if own.times_on > MAX_ON else None

    def _beyond(self, own: ProvedGap, run: Tokens) -> Taken | None:
        """What is done where a fill has gone on too far behind the place where it would have ended."""
        text = own.text(run)
        if own.wanted is None or len(text) <= len(own.wanted) or b"\n" not in self._tokens.token_bytes(run[-1]):
            return None
        if self._may_end(own, text):
            own.wanted = None
            return None
        lines = MAX_BEYOND if own.times_on <= MAX_ON else 0
        return self._ended_early(own, run) if text.count(b"\n", len(own.wanted)) > lines else None

    def _ended_early(self, own: ProvedGap, run: Tokens) -> Taken | None:
        """The fill as it would have ended, up to where it may end; else its last tokens are taken back.

        Beside open gaps it stays as it is: what these will hold may be what it lacks.
        """
        wanted, own.wanted = own.text(run) if own.wanted is None else own.wanted, None
        if (changed := self._end_with(own, run, own.cut(wanted, anywhere=False))) is not None:
            return changed
        as_it_is = self._are_others_open(own) and own.takes(wanted) and wanted.strip()
        if as_it_is and (changed := self._end_with(own, run, wanted)) is not None:
            return changed
        if own.times_misled >= MAX_MISLED and (changed := self._begun_anew(own, run, wanted)) is not None:
            return changed
        return self._back_to(own, own.misled_from(run, wanted), run) or self._last_resort(own, run, wanted)

    def _last_resort(self, own: ProvedGap, run: Tokens, text: bytes) -> Taken | None:
        """What is done with a text where the fill has gone back too often."""
        return self._end_with(own, run, own.cut(text, anywhere=True)) or self._begun_anew(own, run, text)

    def _begun_anew(self, own: ProvedGap, run: Tokens, text: bytes) -> Taken | None:
        """Write, once, the first words of a proof behind the line that lacks least to be a fill.

        The line is one of those that the model had written first, else of a ``text``.
        """
        tried = [] if own.is_begun_anew else dict.fromkeys((*own.left[:1], text))
        own.is_begun_anew = True
        begun = next((one for one in map(own.begun_anew, tried) if one is not None), None)
        if begun is None:
            return None
        own.left.append(own.text(run))
        own.num_unproved = 0
        return self._write(own, run, begun, ends=False)

    def _out_of_budget(self, own: ProvedGap, run: Tokens) -> Taken | None:
        """What is done where the budget ends a fill of which no beginning may be the fill: it is written otherwise."""
        text = own.text(run)
        if len(run) < own.most or self._are_others_open(own):
            return None
        if self._may_end(own, text) or own.cut(text, anywhere=False) is not None:
            return None
        own.refuse_end(text)
        return self._ended_early(own, run)

    def _unproved(self, own: ProvedGap, run: Tokens) -> Taken | None:
        """What is done where the fill ends a line, and no proof was found for the last few."""
        if b"\n" not in self._tokens.token_bytes(run[-1]) or own.leaves(run):
            return None
        if self._is_proved(own, run):
            own.proved, own.num_unproved = run, 0
            return None
        own.num_unproved += 1
        return self._to_last_proved(own, run) if own.num_unproved > MAX_UNPROVED else None

    def _to_last_proved(self, own: ProvedGap, run: Tokens) -> Taken | None:
        """Back to the last place with a proof, or the end of the fill, if what follows there begins like the suffix."""
        place = self._last_proved(own, run)
        text, kept = own.text(run), own.text(run[:place])
        ends = own.ends_before_suffix(text, len(kept))
        if ends and (changed := self._end_with(own, run, kept)) is not None:
            return changed
        own.times_unproved += 1
        if own.times_unproved == MAX_ASTRAY:
            place = own.line_start(run[:place])
        return self._back_to(own, place, run) or self._begun_anew(own, run, text)

    def _last_proved(self, own: ProvedGap, run: Tokens) -> int:
        """How many tokens of a run without a proof have one: more than the known ones, if need be fewer."""
        known = own.proved if run[: len(own.proved)] == own.proved else ()
        low, high = len(known), len(run)
        while high - low > 1:
            middle = (low + high) // 2
            if own.is_proved(run[:middle]):
                low = middle
            else:
                high = middle
        own.proved = run[:low]
        return low

    def _stuck(self, own: ProvedGap, run: Tokens) -> Taken | None:
        """What is done where no token may follow: the end is found further up, or the last token is written anew."""
        if own.wanted is not None:
            return self._ended_early(own, run)
        times = MAX_COLUMNS if own.begins_line(run) else MAX_FORBIDDEN
        return self._back_to(own, len(run) - 1, run, times) or self._last_resort(own, run, own.text(run))

    def _end_with(self, own: ProvedGap, run: Tokens, text: bytes | None) -> Taken | None:
        """End a fill with a text; None without one, or where its tokens do not fit."""
        if text is None or (changed := self._write(own, run, text, ends=True)) is None:
            return None
        self._take_text(own, text)
        return changed

    def _write(self, own: ProvedGap, run: Tokens, text: bytes, *, ends: bool) -> Taken | None:
        """Write a text, or end a fill with it; None where its tokens do not fit."""
        tokens = tuple(self._tokens.encode((own.prefix + text).decode()))
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(run, tokens, strict=False)))
        return None if len(tokens) >= own.most else Taken(same, tokens[same:], ends=ends)

    def _back_to(self, own: ProvedGap, place: int, run: Tokens, times: int = 0) -> Taken | None:
        """Back to a place, where the token that followed is forbidden from now on; None if the fill may not go back.

        A place where others were forbidden before, so many ``times``, is a corner: the token that leads to it is
        forbidden instead.
        """
        most = times or (1 if own.begins_line(run[:place]) else MAX_FORBIDDEN)
        while place > 0 and len(own.forbidden.get(run[:place], ())) >= most:
            most = 1 if own.begins_line(run[: place - 1]) else MAX_FORBIDDEN
            place -= 1
        own.times_back += 1
        own.left.append(own.text(run))
        own.num_unproved, own.wanted = 0, None
        if not 0 <= place < len(run) or own.times_back > MAX_BACK:
            return None
        self.stats.vetoes += 1
        own.forbidden.setdefault(run[:place], set()).add(run[place])
        return Taken(place)

    def may_end(self, gap: int, fill: FillSoFar) -> bool:
        """Whether the fill of a gap is valid as it is, or at the end of the text with the brackets that are due.

        False if it takes too long to tell. What ends with a word such as ``end`` may have just begun.
        """
        with self._bounded():
            self._clock.begin(CALL_SECONDS)
            own = self._gaps[gap]
            own.prefix = fill.prefix
            text = own.text(fill.tokens)
            may_end, closers = self._may_end(own, text), own.closers_after(text) or b""
            behind = self._text[self._regions[gap].end :]
            if may_end and not (closers and (behind.strip() or WORD.search(closers))):
                self._take_text(own, text + closers)
                return True
            if own.wanted is None:
                own.refuse_end(text)
        return False

    def verdict(self, fills: Sequence[FillSoFar], *, late: bool) -> Verdict:
        """The final verdict: each fill with the closers that are due, else what may be delivered of it.

        Where it is ``late``, a fill that has not ended is cut to its lines.
        """
        with self._bounded(least=GRACE_SECONDS):
            if (found := self._finished(fills, late=late)) is not None:
                return Verdict("ok", found)
        why = no_fill(*self._given, self._language, fills, late=late, lines_above=self._lines_above)
        return Verdict("no_valid_fill", None, why, self._unfilled)

    def _finished(self, fills: Sequence[FillSoFar], *, late: bool) -> tuple[str, ...] | None:
        self._clock.begin(CALL_SECONDS, least=GRACE_SECONDS)
        self._see(fills)
        written = self._others.written
        if len(fills) > 1 and all(fill.ended for fill in fills) and all(map(ProvedGap.takes, self._gaps, written)):
            texts = tuple(text.decode() for text in written)
            if self._others.are_valid_together(texts, strict=self._strict):
                return texts
        for own, fill in zip(self._gaps, fills, strict=True):
            endings = self._endings(own, fill, late)
            found = next((text for text in endings if own.judge is None or own.judge.final(text)), None)
            if found is None:
                self._unfilled = own.index
                return None
            self._take_text(own, found)
        whole = self._others.are_valid_together(self._others.fills, strict=self._strict)
        return tuple(self._others.fills) if whole else None

    def _endings(self, own: ProvedGap, fill: FillSoFar, late: bool) -> Iterator[bytes]:
        """The texts that may be delivered for a gap, the longest first."""
        text = own.text(fill.tokens)
        if (fill.ended or not late) and self._may_end(own, text):
            yield text + (own.closers_after(text) or b"")
        if not late:
            written = dict.fromkeys(one for one in (own.wanted, text, *own.left[:1]) if one is not None)
            yield from sorted(own.cut_all(written), key=len, reverse=True)
        yield from own.cuts(fill.tokens, at_lines=late)
        yield from own.cut_all(dict.fromkeys(reversed(own.left)))

    def _take_text(self, own: ProvedGap, text: bytes) -> None:
        """Take the text of a filled gap; the others are judged anew where it differs."""
        own.ended = True
        if text.decode() == self._others.fills[own.index] and not self._others.leave_errors:
            return
        self._others.fills[own.index] = text.decode()
        for other in self._gaps:
            if other is not own:
                other.forget()
