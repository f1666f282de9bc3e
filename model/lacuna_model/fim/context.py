"""The prompts of a document's gaps, encoded and kept between keystrokes.

The prompt of gap g is

    head | between 1 | .. | between g | suffix g | middle and fill

in one causal order, as fill-in-the-middle models are trained. *head* is all text before the first gap, snippets
included; *between i* is the fill of gap i - 1 and the text up to gap i; *suffix g* is the text after gap g without the
later gaps (:mod:`.prompt`). Typing appends to *head*. The suffix keeps its keys and values where it moves, except
those of its nearest tokens, which are read again in the pass that reads the typed text. Where the prefix has changed
too much since the rest was read, the whole suffix is read again.

Some models want the suffix first. Then a gap's prompt is one run, which typing appends to, behind the tokens that begin
any prompt.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from lacuna_model.core.context import Header, Layout, TextTokenizer
from lacuna_model.core.params import FillStats
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.passes import ContextPieces
from lacuna_model.fim.prompt import joined
from lacuna_model.fim.track import Chain, Track, num_unread, unread_rows
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.text.diff import num_common, num_common_end
from lacuna_model.tokenizer import FimTokens

# The first pass of a fill reads so many rows of the context at least: with fewer it would not be faster.
LAST_ROWS = 16
# Tokens at the start of the suffix that are read again when anything before it has changed.
NEAR = 8
# The whole suffix is read again where more tokens of the prefix differ from those it was read after.
MAX_STALE = 96
# A context that only drafts may have the nearest tokens alone: how many, and the share of their worth that drafts have
# then. A quarter of them follow the gap. The first tokens of a prompt belong to them: rows attend to these a lot.
NEAREST = {128: 0.9, 64: 0.85, 32: 0.75}
FIRST = 8


@dataclass(frozen=True, slots=True)
class Prompts:
    """The tokens of a request's prompts.

    ``head`` is the text before the first gap, ``between`` [n - 1] are the texts between neighbouring gaps, and
    ``suffixes`` [n] the texts after each gap, each with the suffix token first. A chat's prompt is all ``head``.
    Where the suffixes come first, the prefix token ends each of them, and ``behind`` is the text before the first gap.
    """

    head: list[int]
    between: list[list[int]]
    suffixes: list[list[int]]
    behind: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, layout: Layout, tokenizer: TextTokenizer, fim: FimTokens) -> "Prompts":
        """The prompts of a layout."""
        if layout.answering is not None:
            return cls([*layout.opening, *layout.segments[0]], [], [[]])
        head, *between = layout.segments
        *earlier, last = between
        suffixes, after = [[fim.suffix, *last]], text_of(last, tokenizer)
        for segment, gap in zip(reversed(earlier), reversed(layout.gaps[1:]), strict=True):
            after = joined(text_of(segment, tokenizer) + gap.prefix.decode(), after)
            suffixes.insert(0, [fim.suffix, *tokenizer.encode(after)])
        if fim.suffix_first:
            whole = [[*suffix, fim.prefix] for suffix in suffixes]
            return cls([*fim.start], [*map(list, between[:-1])], whole, [*layout.opening, *head])
        return cls([*layout.opening, *head], [list(segment) for segment in between[:-1]], suffixes)


def text_of(ids: Sequence[int], tokenizer: TextTokenizer) -> str:
    """The text of whole tokens."""
    return b"".join(map(tokenizer.token_bytes, ids)).decode()


class Whole:
    """A gap's prompt behind the tokens that begin any: the suffix, then all text before the gap.

    If it is ``bare``, its ``last`` token is read with the fill.
    """

    num_missed = 0

    def __init__(self, reader: TrackReader, *, bare: bool) -> None:
        self._bare = bare
        self.track = reader.new()
        self.last: int | None = None

    def become(self, ids: Sequence[int], front: Sequence[int], *, near: int) -> None:
        """Place the tokens ``ids`` after ``front``; those behind the first change are read again."""
        self.last = ids[-1] if self._bare and ids else None
        self.track.become(ids if self.last is None else ids[:-1], len(front))


class GapSuffix:
    """The suffix of one gap as it was read: its track, and how far the tokens before it have changed since."""

    last = None

    def __init__(self, reader: TrackReader) -> None:
        self._reader = reader
        self.track = reader.new()
        self._front: list[int] = []
        self._agreed = 0  # leading tokens of the prefix unchanged since the suffix was read, out of _num_seen
        self._num_seen = 0

    @property
    def num_missed(self) -> int:
        """How many tokens before it differ from those that its oldest tokens were read after."""
        return max(len(self._front), self._num_seen) - self._agreed

    def become(self, ids: Sequence[int], front: Sequence[int], *, near: int) -> None:
        """Place the tokens ``ids`` after ``front``; where that changed, the ``near`` first tokens are read again.

        Where too much of ``front`` changed, all tokens are read again.
        """
        agreed = num_common(self._front, list(front))
        if (len(front), agreed) == (len(self._front), len(front)) and list(ids) == self.track.ids:
            return
        self._agreed = min(self._agreed, agreed)
        self._front = list(front)
        kept = (
            0
            if self.num_missed > MAX_STALE
            else min(num_common_end(self.track.ids, list(ids)), max(len(ids) - near - 1, 0))
        )
        fresh = len(ids) - kept
        track = self.track
        moved = np.concatenate((unread_rows(fresh), track.rows[len(track.rows) - kept :]))
        track.start += len(track.ids) - len(ids)  # where the kept tail would let it begin
        track.ids, track.rows = list(ids), moved
        self._reader.move_to(track, len(front))
        if not kept:
            self._agreed = self._num_seen = len(front)


class FimContext:
    """Holds one document's prompts, encoded, and brings them up to date with a layout."""

    def __init__(
        self,
        reader: TrackReader,
        tokenizer: TextTokenizer,
        fim: FimTokens,
        *,
        near: int = NEAR,
        pieces: ContextPieces | None = None,
        smaller: "FimContext | None" = None,
    ) -> None:
        """``smaller`` has the same prompts for the model that drafts, if there is one."""
        self._pieces = pieces or ContextPieces(reader.device)
        self._tokenizer = tokenizer
        self._fim = fim
        self.near = near
        self.reader = reader
        self._head = self.reader.new()
        self._between: list[Track] = []
        self._suffixes: list[GapSuffix | Whole] = []
        self._header: list[Track] = []  # the middle token, and the header but for its last token
        self._header_behind: list[int] = []  # the prompt that the header was read behind
        self._prompts, self._begin = Prompts([], [], []), fim.middle
        self.smaller = smaller
        self._rough: dict[Track, int] = {}  # from which place on tracks were read without some tokens before

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values hold."""
        return self.reader.num_bytes + (self.smaller.num_bytes if self.smaller is not None else 0)

    @property
    def num_unread(self) -> int:
        """Tokens of the prompts that the next pass has to read."""
        return sum(track.num_unread for track in self._tracks)

    @torch.inference_mode()
    def missing(self, layout: Layout) -> int:
        """Take the prompts of a layout; returns how many of their tokens are still to be read."""
        self._become(layout)
        return self.num_unread

    @torch.inference_mode()
    def updating(self, layout: Layout, *, ahead: bool = False) -> Generator[None, None, FillStats]:
        """Encode the tokens of ``layout`` that are not encoded yet, with pauses; the first pass reads the last piece.

        ``ahead``: no pass follows, so all tokens are encoded, and stale suffixes are read again; the model that drafts
        reads them, too, which it otherwise does later (:meth:`catching_up`). Returns the token counts.
        """
        self._become(layout)
        for track, place in self._rough.items():
            track.forget_from(place)
        self._rough = {}
        counts = yield from self._reading(ahead)
        if self.smaller is not None and ahead:
            yield
            yield from self.smaller.updating(layout, ahead=True)
        elif self.smaller is not None:
            self.smaller._become(layout)
        return counts

    def _become(self, layout: Layout) -> None:
        """Take the prompts of a layout; their tokens are still to be read."""
        self._prompts = prompts = Prompts.of(layout, self._tokenizer, self._fim)
        self._begin = self._fim.middle if layout.answering is None else layout.answering.after
        self._resize(len(prompts.suffixes))
        # Other gaps, and the fills of an earlier request, are not needed any more.
        self.reader.tracks = self._tracks
        self._head.become(prompts.head, 0)
        self.settle([[]] * len(prompts.between))
        for track in self.reader.tracks:
            track.leave_none_out()
        self._head_with(layout.header)

    def _head_with(self, header: Header | None) -> None:
        """Take a header behind the only gap's prompt; what was read of the same one behind the same prompt stays."""
        if header is None:
            self._header = []
            return
        self._begin = header.tokens[-1]
        behind = [token for track in self._prompt(0) for token in track.ids]
        if behind != self._header_behind or not self._header or self._header[1].kind != header.kind:
            self._header, self._header_behind = [Track(), Track(header.kind)], behind
        self._header[0].become([self._fim.middle], len(behind))
        self._header[1].become(header.tokens[:-1], len(behind) + 1)
        self.reader.tracks += self._header

    @torch.inference_mode()
    def ends_at_once(self, header: Header, ends: Sequence[int]) -> float:
        """The probability (0..1) that one of the tokens ``ends`` follows the header of the layout that it has."""
        chain = self.chain(0)
        track = self.reader.new(header.kind)
        track.become(header.tokens[-1:], sum(len(one.ids) for one in chain))
        states = self.reader.read([[*chain, track]])[track]
        self.reader.drop(track)
        said = self.reader.logits(states)[0].float().softmax(-1)
        return float(said[list(ends)].sum())

    def _reading(self, ahead: bool) -> Generator[None, None, FillStats]:
        first, *later = (self._prompt(gap) for gap in range(len(self._suffixes)))
        total, unread = sum(len(track.ids) for track in self._tracks), self.num_unread
        yield from self.reader.ending()
        # The next pass reads the end of the first gap's prompt, and may read none of later gaps.
        while (left := self.num_unread) > (0 if ahead else 2 * LAST_ROWS) or num_unread(later):
            most = left if ahead else max(num_unread(later), left - LAST_ROWS)
            yield from self._pieces.reading(self.reader, [*later, first], most)
            yield
        if ahead:
            yield from self._refreshing()
        return FillStats(context_tokens=total, cached_tokens=total - unread)

    def _refreshing(self) -> Generator[None, None, None]:
        """Read stale suffixes again, each into a new track that replaces the old one once it is complete."""
        for gap, stale in enumerate(self._suffixes):
            if stale.num_missed <= self.near:
                continue
            fresh = GapSuffix(self.reader)
            *before, _ = self._prompt(gap)
            fresh.become(stale.track.ids, [token for track in before for token in track.ids], near=0)
            while fresh.track.unread:
                yield from self._pieces.reading(self.reader, [[*before, fresh.track]])
                yield
            self.reader.drop(stale.track)
            self._suffixes[gap] = fresh

    def settle(self, fills: Sequence[Sequence[int]]) -> None:
        """Put fills into the prompts of later gaps: ``fills`` as tokens, empty where not known yet."""
        front, behind = list(self._head.ids), list(self._prompts.behind)
        for index, suffix in enumerate(self._suffixes):
            if index:
                between = [*fills[index - 1], *self._prompts.between[index - 1]]
                if self._fim.suffix_first:
                    behind += between
                else:
                    self._between[index - 1].become(between, len(front))
                    front += between
            suffix.become([*self._prompts.suffixes[index], *behind], front, near=self.near)

    def num_missing(self, gap: int) -> int:
        """How many tokens of a gap's prompt were not read."""
        return sum(track.num_missing for track in self.chain(gap))

    @torch.inference_mode()
    def catching_up(self, gap: int, worth_ms: float, costs: PassCosts) -> Generator[None, None, bool]:
        """Read what is missing of a gap's prompt for drafts, with pauses; returns whether they can be made.

        Drafts after the whole prompt are worth so many milliseconds (after the nearest tokens alone a part of that),
        and a reading takes what ``costs`` say. What gains most is read; the last few tokens are left to the next pass.
        """
        chain = self.chain(gap)
        if self.num_missing(gap) <= LAST_ROWS:
            for track in chain:
                track.leave_none_out()
            return True
        choices = [(1.0, [np.ones(len(track.ids), dtype=np.bool_) for track in chain])]
        if self.reader.leaves_out:
            choices += [(share, _nearest(chain, count, self._fim.suffix_first)) for count, share in NEAREST.items()]

        def gain(choice: tuple[float, list[NDArray[np.bool_]]]) -> float:
            share, chosen = choice
            rows = sum(int((track.missing & own).sum()) for track, own in zip(chain, chosen, strict=True))
            return share * worth_ms - costs.reading_ms(rows)

        best = max(choices, key=gain)
        if gain(best) < 0:
            return False
        whole = True
        for track, own in zip(chain, best[1], strict=True):
            track.leave_out(~own)
            missing = track.missing
            whole = whole and bool(own[missing].all())
            if not whole and (fresh := (missing & own).nonzero()[0]).size:
                place = 0 if track is not self._head else int(fresh[0])
                self._rough[track] = min(self._rough.get(track, place), place)
        while (left := sum(track.num_unread for track in chain)) > LAST_ROWS:
            yield from self._pieces.reading(self.reader, [chain], left - LAST_ROWS // 2)
            yield
        return True

    @property
    def _tracks(self) -> list[Track]:
        """The tracks of all prompts."""
        return [self._head, *self._between, *(suffix.track for suffix in self._suffixes)]

    def chain(self, gap: int) -> Chain:
        """The tracks before a gap's fill."""
        return [*self._prompt(gap), *self._header]

    def _prompt(self, gap: int) -> Chain:
        """The tracks of a gap's prompt."""
        return [self._head, *self._between[:gap], self._suffixes[gap].track]

    def begins(self, gap: int) -> int:
        """The token between :meth:`chain` and a gap's fill; the last of a header, of a chat's or of a bare prompt."""
        last = self._suffixes[gap].last
        return self._begin if last is None else last

    def _resize(self, gaps: int) -> None:
        fim = self._fim
        del self._suffixes[gaps:], self._between[max(gaps - 1, 0) :]
        while len(self._suffixes) < gaps:
            whole = Whole(self.reader, bare=fim.middle == fim.prefix) if fim.suffix_first else None
            self._suffixes.append(whole or GapSuffix(self.reader))
        while len(self._between) < gaps - 1:
            self._between.append(self.reader.new())


def _nearest(chain: Chain, count: int, behind: bool) -> list[NDArray[np.bool_]]:
    """Which tokens of each track of a prompt are its first ones, or among the ``count`` that are nearest to the gap.

    ``behind``: the text before the gap ends the last track, whose beginning is the text after it.
    """
    chosen = [np.zeros(len(track.ids), dtype=np.bool_) for track in chain]
    after = count // 4
    chosen[-1][:after] = True
    left = count - after
    for own in reversed(chosen if behind else chosen[:-1]):
        own[max(len(own) - left, 0) :] |= left > 0
        left = max(left - len(own), 0)
    chosen[0][:FIRST] = True
    return chosen
