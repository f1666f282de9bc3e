"""Reads canvases with a fill-in-the-middle model: each pass verifies the drafts of all gaps, token by token.

Each row's logits predict the next token given all tokens before it. A draft token is accepted while it is the likeliest
one in the preceding row; the row after the last accepted token yields one token more. So every pass commits at least
one token, and greedy fills are those of the model alone, left to right, whatever the drafts are (arXiv 2211.17192).
A model that has mask rows may read some behind a draft: they propose the draft of the next pass.

A gap waits for the gaps before it, since its prompt will hold their fills. Meanwhile it is drafted ahead in the same
passes, as if it had no gaps before it. Once one of them is filled, what was drafted ahead is a source of drafts like
others: where it does not hold, it goes on from the place where both texts agree again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lacuna_model.core.context import Layout
from lacuna_model.decode.canvas import Canvas, Key, Marginals
from lacuna_model.decode.open_slots import RULED_OUT, joined, only, put_first, slots, sure
from lacuna_model.decode.reader import Drafted
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.drafting.acceptance_rates import DraftedToken
from lacuna_model.fim.drafting.drafts import DrafterStart, Drafts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.passes import AskedChain, Outputs, Wanted
from lacuna_model.fim.prompt import fill_opening
from lacuna_model.fim.summaries import EndRule, parted
from lacuna_model.fim.tracks import Track

# Tokens drafted for one pass, at most, and where a text is rewritten; how many pay is for `costs.PassCosts` to say.
MAX_DRAFTED = 15
MAX_OF_OLD = 63
# The drafter's step is repeated for so many tokens that were committed without it, at most.
MAX_CAUGHT_UP = 4
# The probability of what was said behind a refused draft, before any of it was verified.
REFINED = 0.4
# So many last tokens of an old text are its end, where it is written again.
SAME_END = 12


@dataclass(slots=True)
class FillTokens:
    """The tokens after a gap's prompt: the middle token and the fill.

    While the gap waits, ``ahead`` is what the model writes with the prompt as it is, and ``seen`` the marginals of its
    slots and of the next one; ``complete`` says that it ends there. ``guess`` is what it wrote ahead before the prompt
    changed, or what was masked again. ``written`` are its tokens as they were seen last. ``hidden`` [H] is the state
    after the tokens ``read``, the last that a pass verified. What the model ``said`` is its own next token, and
    ``behind`` what it said of the slots after that: in mask rows or, if it refused a draft token there, behind that.
    ``masks`` is where mask rows are read.
    """

    track: Track
    masks: Track
    ahead: list[int] = field(default_factory=list)
    seen: list[Marginals] = field(default_factory=list)
    complete: bool = False
    guess: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    hidden: Tensor | None = None
    read: list[int] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    behind: list[DraftedToken] = field(default_factory=list)

    def see(self, written: list[int]) -> None:
        """Note the tokens of the fill; if some were masked again, they are a guess at what is to come."""
        if len(written) < len(self.written):
            self.guess = self.written
        self.written = written

    def said_after(self, written: list[int]) -> list[DraftedToken]:
        """What was said of the slots after those ``written``, where the last of these is what the model said there."""
        return self.behind if self.said and written == [*self.read, *self.said] else []

    def start(self, written: list[int]) -> DrafterStart | None:
        """Where the drafter begins after the tokens ``written``; None where it would have to catch up too far."""
        since = written[len(self.read) :]
        if self.hidden is None or written[: len(self.read)] != self.read or not 0 < len(since) <= MAX_CAUGHT_UP:
            return None
        return DrafterStart(self.hidden, since)

    def begin_again(self) -> None:
        """Take what was written ahead for a guess, because the prompt has changed or the gap waits no more."""
        self.guess = self.ahead or self.guess
        self.ahead, self.seen, self.complete = [], [], False
        self.hidden, self.read, self.said, self.behind = None, [], [], []


@dataclass(frozen=True, slots=True)
class Turn:
    """The tokens that a pass reads for a canvas: the ``known`` ones, and a ``draft`` after them to verify.

    The first ``forced`` tokens of the draft are accepted whatever their logits. ``guesses`` are its last tokens, as far
    as :class:`.drafts.Drafts` drafted them, if it ``drafts`` for the canvas at all. So many ``masks`` are read behind.
    """

    canvas: Canvas
    known: list[int]
    draft: list[int]
    forced: int = 0
    waits: bool = False
    drafts: bool = False
    guesses: list[DraftedToken] = field(default_factory=list)
    masks: int = 0

    @property
    def written(self) -> list[int]:
        """The known tokens, and those of the draft."""
        return [*self.known, *self.draft]

    def held(self, best: Sequence[int]) -> int:
        """How many tokens of the draft are accepted, given the ``best`` token of every row."""
        pairs = enumerate(zip(self.draft, best, strict=False))
        refused = (index for index, (token, found) in pairs if index >= self.forced and token != found)
        return next(refused, len(self.draft))


class FimReader:
    """Reads one request's canvases after a document's prompts."""

    def __init__(self, model: LoadedFim, context: FimContext, drafts: Drafts | None, layout: Layout) -> None:
        self.passes, self.corrections = 0, 0
        answering, device = layout.answering, model.transformer.device
        fences = sorted(answering.fences) if answering is not None else []
        self._begin = fill_opening(model.fim, layout)
        self._fences = torch.tensor(fences, dtype=torch.long, device=device)
        self._closing = torch.tensor([model.tokenizer.eog_id, *fences], device=device)
        self._ends_as_old = answering is not None and answering.as_old
        self._end = torch.tensor([model.tokenizer.eog_id], device=device)
        self._layout = layout
        self._model = model
        self._context = context
        self._drafts = drafts
        self._eog_id = model.tokenizer.eog_id
        self._lines: dict[Key, FillTokens] = {}
        self._settled: list[list[int]] = [[] for _ in layout.gaps[1:]]
        self._announced: tuple[list[Turn], Wanted] | None = None
        self._beside = 0  # rows of other requests in the last pass

    @torch.inference_mode()
    def announce(self, canvases: Sequence[Canvas]) -> None:
        """Decide what the next pass reads for the open canvases, which another request's pass may then read, too."""
        self._settle(canvases)
        turns: list[Turn] = []
        for canvas in canvases:
            if canvas.closed or canvas.is_full:
                continue
            waits, line = self._waits(canvas, canvases), self._line(canvas)
            if line.seen and not waits:
                line.begin_again()
            if not line.complete:
                turns.append(self._turn(canvas, waits))
        turns = self._drafted(turns)
        if turns:
            wanted = self._wanted(turns)
            self._announced = turns, wanted
            self._model.passes.announce(wanted)

    def drafted(self, canvas: Canvas) -> list[Drafted]:
        """The drafted tokens that the announced pass verifies behind those of a canvas, and the masks behind them."""
        turn = next((one for one in self._announced[0] if one.canvas is canvas), None) if self._announced else None
        if turn is None or turn.waits:
            return []
        known = [Drafted(token, 1.0) for token in turn.draft[: len(turn.draft) - len(turn.guesses)]]
        guesses = [Drafted(guess.token, guess.probability) for guess in turn.guesses]
        return [*known, *guesses, *[Drafted(None)] * turn.masks]

    def withdraw(self) -> None:
        """Take back what was announced."""
        if self._announced is not None:
            self._model.passes.withdraw(self._announced[1])
            self._announced = None

    @torch.inference_mode()
    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """Marginals of every open canvas up to the first slot that its draft does not decide."""
        if self._announced is None:
            self.announce(canvases)
        if self._announced is None:
            return [self._seen_ahead(canvas) for canvas in canvases]
        turns, wanted = self._announced
        self._announced = None
        outputs = iter(self._model.passes.read(wanted))
        self.passes += 1
        self._beside = wanted.beside
        read = {turn.canvas.key: (turn, next(outputs)) for turn in turns}
        found = {key: self._marginals(turn, own) for key, (turn, own) in read.items()}
        self._take_masked(turns, outputs)
        return [found.get(canvas.key) or self._seen_ahead(canvas) for canvas in canvases]

    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Do nothing: a fill is read as one run, whatever its blocks."""

    @torch.inference_mode()
    def likelihood(self, fills: Sequence[Sequence[int]]) -> float:
        """Score fills: the log-probability of their tokens and ends over the square root of their length.

        Each gap's fill is scored given the fills of the gaps before it.
        """
        self._context.settle([list(fill) for fill in fills[:-1]])
        total, length = 0.0, 0
        reader = self._context.reader
        for gap, fill in enumerate(fills):
            chain = self._context.chain(gap)
            track = reader.new()
            track.become([self._context.begins(gap, self._begin), *fill], sum(len(one.ids) for one in chain))
            logits = reader.logits(reader.read([[*chain, track]])[track])
            rows = self._model.digests.restricted(logits).log_softmax(-1)
            reader.drop(track)
            self.passes += 1
            said = rows[torch.arange(len(fill) + 1), torch.tensor([*fill, self._eog_id])]
            total += float(said.sum())
            length += len(said)
        self._context.settle(self._settled)
        return float(total / length**0.5)

    def _waits(self, canvas: Canvas, canvases: Sequence[Canvas]) -> bool:
        """Whether a gap before a canvas is not filled yet."""
        mine = canvas.gap.index
        return any(
            not other.closed and other.candidate == canvas.candidate and other.gap.index < mine for other in canvases
        )

    def _settle(self, canvases: Sequence[Canvas]) -> None:
        """Put finished fills into the prompts of later gaps; forks are read with the fills of the first candidate."""
        first = [canvas for canvas in canvases if canvas.candidate == canvases[0].candidate]
        settled = [canvas.tokens() if canvas.closed else [] for canvas in first[:-1]]
        if settled != self._settled:
            before, self._settled = self._settled, settled
            self._context.settle(settled)
            if self._drafts is not None:
                self._drafts.filled(settled)
            for (_, gap), line in self._lines.items():
                if settled[:gap] != before[:gap]:
                    line.begin_again()

    def _turn(self, canvas: Canvas, waits: bool) -> Turn:
        """The tokens that the next pass reads for a canvas, before any are guessed."""
        written, line = canvas.tokens(), self._line(canvas)
        line.see(written)
        if begun := list(canvas.begun):
            return Turn(canvas, written, begun, forced=len(begun))
        room = self._room(canvas, written)
        known = line.ahead[: canvas.frontier + room] if waits and line.ahead[: len(written)] == written else written
        old = self._layout.old(canvas.gap.index) or line.guess
        healed = None if known or old else self._model.tokenizer.token(canvas.gap.prefix)
        # The healed text is likely to be the token that it is.
        draft = [healed] if healed is not None and self._room(canvas, known) else []
        drafts = bool(known or draft or old or not canvas.gap.prefix)
        return Turn(canvas, known, draft, waits=waits, drafts=drafts)

    @staticmethod
    def _room(canvas: Canvas, known: Sequence[int]) -> int:
        """How many tokens may be drafted after the ``known`` ones; one slot is left for the token after them."""
        first, size = canvas.frontier, len(canvas.slots)
        # The constraint may have filled slots further on: the draft ends before them.
        end = next((slot for slot in range(first + 1, size) if canvas.slots[slot] is not None), size)
        return end - first - 1 + len(canvas.tokens()) - len(known)

    def _drafted(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns with guesses at what follows."""
        if self._drafts is None:
            return list(turns)
        self._drafts.prepare({turn.canvas.key: turn.written for turn in turns if turn.drafts})
        rows = self._context.num_unread + self._beside + sum(len(turn.draft) + 1 for turn in turns)
        found = list[Turn]()
        for turn in turns:
            found.append(self._guessed(turn, self._drafts, rows) if turn.drafts else turn)
            rows += len(found[-1].guesses) + found[-1].masks
        return found

    def _guessed(self, turn: Turn, drafts: Drafts, rows: int) -> Turn:
        """A turn with guesses and masks, in a pass of so many ``rows`` without them."""
        canvas, written, line = turn.canvas, turn.written, self._line(turn.canvas)
        rewrites = self._layout.old(canvas.gap.index) or line.guess
        most = min(self._room(canvas, turn.known), MAX_OF_OLD if rewrites else MAX_DRAFTED) - len(turn.draft)
        start, said = line.start(written), line.said_after(written)
        guesses = drafts.draft(canvas.key, written, most, start, rows, line.guess, said)
        end = sum(len(one.ids) for one in self._context.chain(canvas.gap.index)) + 1 + len(written) + len(guesses)
        guesses, masks = drafts.with_masks(guesses, rows, self._model.config.max_positions - end)
        draft = [*turn.draft, *(guess.token for guess in guesses)]
        return replace(turn, draft=draft, guesses=guesses, masks=masks)

    def _line(self, canvas: Canvas) -> FillTokens:
        if canvas.key not in self._lines:
            self._lines[canvas.key] = FillTokens(self._context.reader.new(), self._context.reader.new())
        return self._lines[canvas.key]

    def _wanted(self, turns: Sequence[Turn]) -> Wanted:
        """What the turns need of a pass: outputs after each one's known tokens, each that is drafted, and each mask."""
        asked: list[AskedChain] = []
        masked: list[AskedChain] = []
        for turn in turns:
            chain, line = self._context.chain(turn.canvas.gap.index), self._line(turn.canvas)
            track, masks = line.track, line.masks
            begin = self._context.begins(turn.canvas.gap.index, self._begin)
            track.become([begin, *turn.known, *turn.draft], sum(len(one.ids) for one in chain))
            track.forget_from(len(turn.known))  # the last known token is read again, for its output
            asked.append(AskedChain([*chain, track], self._rules(turn), turn.held))
            masks.become([-1 - mask for mask in range(turn.masks)], track.start + len(track.ids))
            masks.forget_from(0)
            if turn.masks:
                masked.append(AskedChain([*chain, track, masks], [EndRule()] * turn.masks, len))
        return Wanted(self._context.reader, [*asked, *masked])

    def _rules(self, turn: Turn) -> list[EndRule]:
        """What may follow a turn's known tokens, and each that is drafted."""
        written, known = [*turn.known, *turn.draft], len(turn.known)
        return [self._rule(turn.canvas, written[:count]) for count in range(known, len(written) + 1)]

    def _marginals(self, turn: Turn, outputs: Outputs) -> Marginals:
        """The marginals of a turn's rows; rows after the first refused draft token are dropped."""
        canvas, (ids, logp, entropy) = turn.canvas, parted(outputs.summaries)
        held = min(turn.held(ids[:, 0].tolist()), len(ids) - 1)
        self._remember(turn, outputs.states, held, outputs.best[held:])
        found = Marginals(ids[: held + 1], logp[: held + 1], entropy[: held + 1], held + 1)
        for index, token in enumerate(turn.draft[: turn.forced]):
            put_first(found, index, token)
        if turn.waits:
            return self._went_ahead(turn, found)
        return joined([*(sure(token) for token in canvas.slots[: canvas.frontier] if token is not None), found])

    def _remember(self, turn: Turn, states: Tensor, held: int, said: list[int]) -> None:
        """Keep the state after the draft's first ``held`` tokens, which were right, and tell the drafts' source.

        ``said`` are the likeliest tokens of the rows from there on.
        """
        line = self._line(turn.canvas)
        line.hidden, line.read, line.said = states[held], [*turn.known, *turn.draft[:held]], said[:1]
        line.behind = [DraftedToken(token, REFINED, "refined", slot) for slot, token in enumerate(said[1:])]
        given = len(turn.draft) - len(turn.guesses)
        if self._drafts is not None and held >= given:
            self._drafts.verified(turn.guesses, held - given)

    def _take_masked(self, turns: Sequence[Turn], outputs: Iterator[Outputs]) -> None:
        """Keep what mask rows said, where all that was read before them holds, and forget their keys and values."""
        for turn in (turn for turn in turns if turn.masks):
            line, (ids, logp, _) = self._line(turn.canvas), parted(next(outputs).summaries)
            line.masks.forget_from(0)
            if line.read == turn.written:
                likely = zip(ids[:, 0].tolist(), np.exp(logp[:, 0]).tolist(), strict=True)
                line.behind = [DraftedToken(token, one, "masked", slot) for slot, (token, one) in enumerate(likely, 1)]

    def _went_ahead(self, turn: Turn, found: Marginals) -> Marginals:
        """The marginals shown for a gap that waits, after more tokens of it were written ahead."""
        line, known = self._line(turn.canvas), turn.known
        earlier = line.seen[: len(known)]
        earlier += [sure(token) for token in known[len(earlier) :]]
        line.seen = [*earlier, *slots(found)]
        *held, best = (int(seen.ids[0, 0]) for seen in line.seen[len(known) :])
        line.ahead = [*known, *held, *([best] if best != self._eog_id else [])]
        line.complete = best == self._eog_id or len(line.ahead) >= len(turn.canvas.slots)
        return replace(joined(line.seen), exact=0, waits=True)

    def _seen_ahead(self, canvas: Canvas) -> Marginals | None:
        """The marginals of a gap that waits and is written ahead to its end; None for others."""
        if canvas.closed or canvas.is_full:
            return None
        return replace(joined(self._line(canvas).seen), exact=0, waits=True)

    def _rule(self, canvas: Canvas, written: Sequence[int]) -> EndRule:
        """What may follow the tokens ``written``: no too early end, and no break of the healed text."""
        early = len(written) < canvas.least
        allowed = canvas.masks.allowed(written) if canvas.masks is not None else None
        if allowed is not None:
            return EndRule(early, partial(only, allowed=torch.from_numpy(allowed).to(self._end.device)))
        prefix = canvas.gap.prefix
        if prefix and (due := self._model.prefixes.due(prefix, written)):
            return EndRule(early, partial(only, allowed=self._model.prefixes.starting_with(due)))
        if len(self._fences) and (not written or self._begins_line(written)):
            return EndRule(early, self._closes)
        if self._ends_as_old and self._is_at_end(canvas, written):
            return EndRule(early, partial(only, allowed=self._end))
        return EndRule(early)

    def _closes(self, row: Tensor) -> None:
        """Let a fence in a row [V] end the fill, as the end token does."""
        row[self._eog_id] = row[self._closing].logsumexp(-1)
        row.index_fill_(0, self._fences, RULED_OUT)

    def _is_at_end(self, canvas: Canvas, written: Sequence[int]) -> bool:
        """Whether the last tokens of the text that stood in the gap have just been written again."""
        old = self._layout.old(canvas.gap.index)
        return self._begins_line(written) and tuple(written[-SAME_END:]) == old[-SAME_END:]

    def _begins_line(self, written: Sequence[int]) -> bool:
        """Whether the next token begins a line."""
        return bool(written) and self._model.tokenizer.token_bytes(written[-1]).endswith(b"\n")
