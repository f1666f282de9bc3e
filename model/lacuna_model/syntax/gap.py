"""One gap while it is filled: its tokens as text, its region's rules, and what is known of its beginnings.

A beginning of the fill, given as tokens, can be *read* or not, and be *proved* or not: there is a text that completes
it. Both hold for all shorter beginnings, too. It may *end* where only closers that are due are missing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from lacuna_model.core.constraint import TokenText
from lacuna_model.syntax.judge import Judge
from lacuna_model.syntax.readable import Reading
from lacuna_model.syntax.region import RegionRules
from lacuna_model.text.lines import is_utf8

MAX_CUTS = 64  # shorter fills that are tried where a fill cannot be completed
MAX_CLOSED = 12  # of them that are tried with closers, too
MAX_CHARACTERS = 512  # at which a fill is cut
LEAST_REPEATED = 2  # characters with which a text goes on like the suffix
Tokens = tuple[int, ...]


class ProvedGap:
    """What is known of a gap's fill; ``judge`` and ``reading`` give None without a grammar.

    ``forbidden`` holds the tokens that may not follow some others. ``most`` is how many tokens the fill may have,
    ``prefix`` the healed text, which the tokens repeat and the text of the fill does not.
    """

    def __init__(
        self,
        index: int,
        tokens: TokenText,
        rules: RegionRules,
        judge: Callable[[], Judge | None],
        reading: Callable[[], Reading | None],
        *,
        whole_lines: bool,
    ) -> None:
        self.index, self.most, self.prefix = index, 0, b""
        self.forbidden: dict[Tokens, set[int]] = {}
        self.proved: Tokens = ()
        self.wanted: bytes | None = None  # the fill as the model or a stop rule would have ended it, where it may not
        self.left: list[bytes] = []  # what the fill held each time when it went back
        self.times_misled = self.times_back = self.times_unproved = self.times_on = 0
        self.num_unproved = 0
        self.ended = self.is_begun_anew = False
        self._tokens, self._rules = tokens, rules
        self._whole_lines = whole_lines
        self._make_judge, self._make_reading = judge, reading
        self._judge: Judge | None = None
        self._reading: Reading | None = None
        self._closers: dict[bytes, bytes | None] = {}

    @property
    def judge(self) -> Judge | None:
        """The judge of the fills, made when it is first needed; None as long as nothing can be asked of them."""
        self._judge = self._judge or self._make_judge()
        return self._judge

    def forget(self) -> None:
        """Judge anew: the other gaps have changed."""
        self._judge = self._reading = None
        self.proved = ()
        self._closers.clear()

    def written(self, tokens: Sequence[int]) -> bytes:
        """The text that tokens put into the gap, without the healed text."""
        return self._tokens.decode_bytes(tokens)[len(self.prefix) :]

    def text(self, tokens: Sequence[int]) -> bytes:
        """The text that tokens put into the gap, without the lines that the region does not take."""
        return self._rules.cut(self.written(tokens))

    def leaves(self, tokens: Sequence[int]) -> bool:
        """Whether tokens continue in a line that the region does not take."""
        return self.text(tokens) != self.written(tokens)

    def reads(self, tokens: Sequence[int]) -> bool:
        """Whether the grammar and the region's rules can read a beginning; what they cannot tell reads."""
        data = self._tokens.decode_bytes(tokens)
        if not (data.startswith(self.prefix) or self.prefix.startswith(data)):
            return False
        text = self.text(tokens)
        if not self._rules.goes_on(text):
            return False
        self._reading = self._reading or self._make_reading()
        known = self._reading is None or self._reading.reads(text.decode(errors="ignore").encode())
        return known or (self.judge is not None and self.judge.is_broken)

    def begins_line(self, tokens: Sequence[int]) -> bool:
        """Whether the line that tokens end in is blank."""
        return not self.text(tokens).rpartition(b"\n")[2].strip()

    def line_start(self, tokens: Tokens) -> int:
        """How many of some tokens stand before the first word of the last line."""
        return next((end for end in range(len(tokens), 0, -1) if self.begins_line(tokens[:end])), 0)

    def leaves_column(self, tokens: Sequence[int], token: int) -> bool:
        """Whether tokens begin a line at a column where no ``token`` may stand."""
        written, text = self.text(tokens), self.text([*tokens, token])
        blank = written[written.rfind(b"\n") + 1 :]
        if not blank or blank.strip() or self._reading is None:
            return False
        return not self._reading.is_at_its_column(text.decode(errors="ignore").encode())

    def is_proved(self, tokens: Sequence[int]) -> bool:
        """Whether something is found that completes a beginning."""
        return self._proof(self.text(tokens).rstrip(b" \t")) is not None

    def _proof(self, text: bytes) -> bytes | None:
        return self.judge.close(text.decode(errors="ignore").encode()) if self.judge is not None else b""

    def begun_anew(self, text: bytes) -> bytes | None:
        """The whole lines of a text that lack least to be a fill, and what their proof has before its first name.

        None where that is nothing but blanks.
        """
        lines = [text[:end] for end in range(1, len(text)) if text[end - 1 : end] == b"\n" and is_utf8(text[:end])]
        proofs = {line: proof for line in lines if (proof := self._proof(line)) is not None}
        nearest = min(reversed(proofs), key=lambda line: len(b"".join(proofs[line].split())), default=None)
        if nearest is None or self.judge is None or (name := self.judge.name.search(proofs[nearest])) is None:
            return None
        words = proofs[nearest][: name.start()].lstrip(b"\r\n").rstrip()
        return nearest + words if words else None

    def closers_after(self, text: bytes) -> bytes | None:
        """The closers that are due after a text for it to be the fill; None where it cannot be."""
        if text not in self._closers:
            self._closers[text] = next(self._closers_after(text), None)
        return self._closers[text]

    def _closers_after(self, text: bytes) -> Iterator[bytes]:
        for more in (b"", *self._rules.completions(text)):
            if self.takes(text + more):
                closers = self.judge.closers_after(text + more) if self.judge is not None else b""
                if closers is not None and self.takes(text + more + closers):
                    yield more + closers

    def takes(self, text: bytes) -> bool:
        """Whether a text can be the fill by the region's rules."""
        rules = self._rules
        if not is_utf8(text) or rules.cut(text) != text or not rules.accepts(text):
            return False
        return not rules.least_tokens or len(self._tokens.encode((self.prefix + text).decode())) >= rules.least_tokens

    def _may_be_fill(self, text: bytes) -> bool:
        """Whether a text may be the fill as it is."""
        return self.takes(text) and (self.judge is None or self.judge.is_valid(text))

    def cut_all(self, texts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield what is left of some texts that are cut anywhere, where something is."""
        return (cut for text in texts if (cut := self.cut(text, anywhere=True)) is not None)

    def cut(self, text: bytes, *, anywhere: bool) -> bytes | None:
        """The longest beginning of a text that may be the fill; None where only blanks are left.

        A fill of whole lines ends with a line first. The gap may begin its suffix within a token: where a gap ends
        within a line, its fill ends first where the text goes on like the suffix, else between two words. So does that
        of another gap if it may be cut ``anywhere``.
        """
        again, ends = list[int](), list[int]()
        if self._whole_lines:
            own = not self._rules.ends_line
            ends = [newline.start() + own for newline in re.finditer(rb"\n", text)][::-1]
        if anywhere or not self._whole_lines:
            again = [end for end in range(len(text), -1, -1) if self._goes_on_like_suffix(text, end)]
            words = (end for end in range(len(text), 0, -1) if self._rules.parts_words(text, end))
            ends = list(dict.fromkeys((*ends, *again, *words)))
        some = (end for end in ends[:MAX_CHARACTERS] if text[:end].strip() or end in again)
        return next((text[:end] for end in some if self._may_be_fill(text[:end])), None)

    def ends_before_suffix(self, text: bytes, end: int) -> bool:
        """Whether a gap that ends within a line is filled by the beginning of a text that goes on like the suffix."""
        return not self._whole_lines and self._goes_on_like_suffix(text, end) and self._may_be_fill(text[:end])

    def _goes_on_like_suffix(self, text: bytes, end: int) -> bool:
        return self._rules.is_followed_by(text[end : end + LEAST_REPEATED])

    def refuse_end(self, text: bytes) -> None:
        """Note that the fill may not be a text with which the model, or a stop rule, would have ended it."""
        self.wanted = text if self.wanted is None else self.wanted
        self.times_on += 1

    def misled_from(self, tokens: Sequence[int], text: bytes) -> int:
        """How many of the tokens stay if a part of their text led nowhere: twice as many of its last ones go each time.

        At most those from the first word of its last line go.
        """
        begin = text.rstrip().rfind(b"\n") + 1
        texts = [self.text(tokens[:number]) for number in range(len(tokens) + 1)]
        first = next((number for number, one in enumerate(texts[1:]) if one[begin:].strip()), len(tokens) - 1)
        end = next(number for number, one in enumerate(texts) if len(one) >= len(text) or number == len(tokens))
        self.times_misled += 1
        return max(first, end - (1 << (self.times_misled - 1)))

    def cuts(self, tokens: Sequence[int], *, at_lines: bool) -> Iterator[bytes]:
        """Yield ever shorter beginnings of a fill that may be delivered, the longest with closers that are due.

        They end in its last line, unless ``at_lines``, then with a line.
        """
        whole = self.text(tokens)
        last = whole.rfind(b"\n") + 1
        begun = (self.text(tokens[:end]) for end in range(0 if at_lines else len(tokens), -1, -1))
        parts = dict.fromkeys(text for text in begun if len(text) > last)
        lines = [whole[:end] for end in range(last, -1, -1) if not end or whole[end - 1 : end] == b"\n"]
        for number, text in enumerate([*parts, *lines][:MAX_CUTS]):
            if number < MAX_CLOSED and (closers := self.closers_after(text)) is not None:
                yield text + closers
            elif number >= MAX_CLOSED and self._may_be_fill(text):
                yield text


def takes_lines(before: bytes, after: bytes) -> bool:
    """Whether a gap between two texts holds whole lines: it begins a line, and does not end within one."""
    rest = after.partition(b"\n")[0]
    return not rest.strip() or (before[-1:] in (b"", b"\n") and rest[:1].isspace())
