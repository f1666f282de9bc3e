"""Reads fills with a fill-in-the-middle model: each pass verifies the drafts of all gaps, token by token.

Each row's logits predict the next token given all tokens before it. A draft token is accepted while it is the likeliest
one in the preceding row; the row after the last accepted token yields one token more. So every pass commits at least
one token, and greedy fills are those of the model alone, left to right, whatever the drafts are (arXiv 2211.17192).
A model that has mask rows may read some behind a draft: they propose the draft of the next pass.

A gap waits for the gaps before it, since its prompt will hold their fills. Meanwhile it is drafted ahead in the same
passes, as if it had no gaps before it. Once one of them is filled, what was drafted ahead is a source of drafts like
others: where it does not hold, it goes on from the place where both texts agree again.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lacuna_model.core.constraint import Run
from lacuna_model.core.context import Layout, finished
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.fill import Fill, Key
from lacuna_model.decode.reader import Drafted
from lacuna_model.decode.sampling import RULED_OUT, drawn, only, put_first
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.drafting.acceptance_rates import DraftedToken
from lacuna_model.fim.drafting.drafts import Drafts, WrittenFill
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.passes import AskedChain, Outputs, Wanted
from lacuna_model.fim.prompt import fill_opening
from lacuna_model.fim.summaries import EndRule, parted
from lacuna_model.fim.tracks import Track

# Tokens drafted for one pass, at most, and where a text is rewritten; how many pay is for `costs.PassCosts` to say.
MAX_DRAFTED = 15
MAX_OF_OLD = 63
# The probability of what was said behind a refused draft, before any of it was verified.
REFUSED = 0.4
# So many last tokens of an old text are its end, where it is written again.
SAME_END = 12
GREEDY = DecodeOptions()


@dataclass(slots=True)
class FillTokens:
    """The tokens after a gap's prompt: the middle token and the fill.

    While the gap waits, ``ahead`` is what the model writes with the prompt as it is; ``complete`` says that it ends
    there. ``guess`` is what it wrote ahead before the prompt changed, or what was taken back. ``written`` are its
    tokens as they were seen last, and ``read`` those that the last pass has verified. What the model ``said`` is its
    own next token, and ``behind`` what it said of the slots after that: in mask rows or, if it refused a draft token
    there, behind that.
    ``masks`` is where mask rows are read.
    """

    track: Track
    masks: Track
    ahead: list[Drafted] = field(default_factory=list)
    complete: bool = False
    guess: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    behind: list[DraftedToken] = field(default_factory=list)

    def see(self, written: list[int]) -> None:
        """Note the tokens of the fill; if some were taken back, they are a guess at what is to come."""
        if len(written) < len(self.written):
            self.guess = self.written
        self.written = written

    def said_after(self, written: list[int]) -> list[DraftedToken]:
        """What was said of the slots after those ``written``, where the last of these is what the model said there."""
        return self.behind if self.said and written == [*self.read, *self.said] else []

    @property
    def tokens_ahead(self) -> list[int]:
        """The tokens that were written ahead."""
        return [one.token for one in self.ahead if one.token is not None]

    def begin_again(self) -> None:
        """Take what was written ahead for a guess, because the prompt has changed or the gap waits no more."""
        self.guess = self.tokens_ahead or self.guess
        self.ahead, self.complete = [], False
        self.read, self.said, self.behind = [], [], []


@dataclass(frozen=True, slots=True)
class Turn:
    """The tokens that a pass reads for a fill: the ``known`` ones, and a ``draft`` after them to verify.

    The first ``forced`` tokens of the draft are accepted whatever their logits. ``guesses`` are its last tokens, as far
    as :class:`.drafts.Drafts` drafted them, if it ``drafts`` for the fill at all. So many ``masks`` are read behind.
    """

    fill: Fill
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
    """Reads one request's fills after a document's prompts, with the temperature and the seed of its ``options``."""

    def __init__(
        self,
        model: LoadedFim,
        context: FimContext,
        drafts: Drafts | None,
        layout: Layout,
        options: DecodeOptions = GREEDY,
    ) -> None:
        self.passes, self.corrections = 0, 0
        answering, device = layout.answering, model.transformer.device
        fences = sorted(answering.fences) if answering is not None else []
        self._begin = fill_opening(model.fim, layout)
        self._fences = torch.tensor(fences, dtype=torch.long, device=device)
        self._closing = torch.tensor([model.tokenizer.eog_id, *fences], device=device)
        self._ends_as_old = answering is not None and answering.as_old
        self._end = torch.tensor([model.tokenizer.eog_id], device=device)
        self._layout, self._options = layout, options
        self._model = model
        self._context = context
        self._drafts = drafts
        self._eog_id = model.tokenizer.eog_id
        self._lines: dict[Key, FillTokens] = {}
        self._settled: list[list[int]] = [[] for _ in layout.gaps[1:]]
        self._announced: tuple[list[Turn], Wanted] | None = None
        self._beside = 0  # rows of other requests in the last pass

    @torch.inference_mode()
    def announcing(self, fills: Sequence[Fill]) -> Generator[None, None, None]:
        """Decide what the next pass reads for the open fills, which another request's pass may then read, too."""
        self._settle(fills)
        turns: list[Turn] = []
        for fill in fills:
            if not fill.is_open:
                continue
            waits, line = self._waits(fill, fills), self._line(fill)
            if not waits and (line.ahead or line.complete):
                line.begin_again()
            if not line.complete:
                turns.append(self._turn(fill, waits))
        turns = yield from self._drafted(turns)
        if turns:
            wanted = self._wanted(turns)
            self._announced = turns, wanted
            self._model.passes.announce(wanted)

    def drafted(self, fill: Fill) -> list[Drafted]:
        """What the announced pass verifies behind the tokens of a fill, and the masks; what a waiting one has ahead."""
        turns = self._announced[0] if self._announced else []
        turn = next((one for one in turns if one.fill is fill), None)
        if turn is None or turn.waits:
            return self._line(fill).ahead[len(fill.tokens) :] if fill.is_open else []
        known = [Drafted(token, 1.0) for token in turn.draft[: len(turn.draft) - len(turn.guesses)]]
        guesses = [Drafted(guess.token, guess.probability) for guess in turn.guesses]
        return [*known, *guesses, *[Drafted(None)] * turn.masks]

    def withdraw(self) -> None:
        """Take back what was announced."""
        if self._drafts is not None:
            self._drafts.withdraw()
        if self._announced is not None:
            self._model.passes.withdraw(self._announced[1])
            self._announced = None

    @torch.inference_mode()
    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """The run of every open fill that does not wait: the draft as far as it holds, and the model's next token."""
        if self._announced is None:
            finished(self.announcing(fills))
        if self._announced is None:
            return [None] * len(fills)
        turns, wanted = self._announced
        self._announced = None
        outputs = iter(self._model.passes.read(wanted))
        self.passes += 1
        self._beside = wanted.beside
        runs = {turn.fill.key: self._run(turn, next(outputs)) for turn in turns}
        self._take_masked(turns, outputs)
        return [runs.get(fill.key) for fill in fills]

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

    def _waits(self, fill: Fill, fills: Sequence[Fill]) -> bool:
        """Whether a gap before that of a fill is not filled yet."""
        mine = fill.gap.index
        return any(
            not other.has_ended and other.candidate == fill.candidate and other.gap.index < mine for other in fills
        )

    def _settle(self, fills: Sequence[Fill]) -> None:
        """Put finished fills into the prompts of later gaps; forks are read with the fills of the first candidate."""
        first = [fill for fill in fills if fill.candidate == fills[0].candidate]
        settled = [fill.tokens if fill.has_ended else [] for fill in first[:-1]]
        if settled != self._settled:
            before, self._settled = self._settled, settled
            self._context.settle(settled)
            if self._drafts is not None:
                self._drafts.filled(settled)
            for (_, gap), line in self._lines.items():
                if settled[:gap] != before[:gap]:
                    line.begin_again()

    def _turn(self, fill: Fill, waits: bool) -> Turn:
        """The tokens that the next pass reads for a fill, before any are guessed."""
        written, line = list(fill.tokens), self._line(fill)
        line.see(written)
        if begun := list(fill.begun):
            return Turn(fill, written, begun, forced=len(begun))
        ahead = line.tokens_ahead[: fill.most - 1] if waits else []
        known = ahead if ahead[: len(written)] == written else written
        old = self._layout.old(fill.gap.index) or line.guess
        healed = None if known or old else self._model.tokenizer.token(fill.gap.prefix)
        # The healed text is likely to be the token that it is.
        draft = [healed] if healed is not None and fill.most > 1 else []
        drafts = bool(known or draft or old or not fill.gap.prefix)
        return Turn(fill, known, draft, waits=waits, drafts=drafts)

    def _drafted(self, turns: Sequence[Turn]) -> Generator[None, None, list[Turn]]:
        """The turns with guesses at what follows."""
        if self._drafts is None:
            return list(turns)
        fills = {turn.fill.key: self._written(turn) for turn in turns if turn.drafts}
        yield from self._drafts.preparing(fills)
        rows = self._context.num_unread + self._beside + sum(len(turn.draft) + 1 for turn in turns)
        found = list[Turn]()
        for turn in turns:
            found.append(self._guessed(turn, self._drafts, fills[turn.fill.key], rows) if turn.drafts else turn)
            rows += len(found[-1].guesses) + found[-1].masks
        return found

    def _written(self, turn: Turn) -> WrittenFill:
        """What is known of a turn's fill, for its drafts."""
        written, line = turn.written, self._line(turn.fill)
        rewrites = self._layout.old(turn.fill.gap.index) or line.guess
        room = turn.fill.most - 1 - len(turn.known)  # one place is left for the token behind the draft
        most = min(room, MAX_OF_OLD if rewrites else MAX_DRAFTED) - len(turn.draft)
        return WrittenFill(written, most, line.guess, line.said_after(written))

    def _guessed(self, turn: Turn, drafts: Drafts, written: WrittenFill, rows: int) -> Turn:
        """A turn with guesses and masks, in a pass of so many ``rows`` without them."""
        guesses = drafts.draft(turn.fill.key, written, rows)
        before = sum(len(one.ids) for one in self._context.chain(turn.fill.gap.index))
        end = before + 1 + len(turn.written) + len(guesses)
        guesses, masks = drafts.with_masks(guesses, rows, self._model.config.max_positions - end)
        draft = [*turn.draft, *(guess.token for guess in guesses)]
        return replace(turn, draft=draft, guesses=guesses, masks=masks)

    def _line(self, fill: Fill) -> FillTokens:
        if fill.key not in self._lines:
            self._lines[fill.key] = FillTokens(self._context.reader.new(), self._context.reader.new())
        return self._lines[fill.key]

    def _wanted(self, turns: Sequence[Turn]) -> Wanted:
        """What the turns need of a pass: outputs after each one's known tokens, each that is drafted, and each mask."""
        asked: list[AskedChain] = []
        masked: list[AskedChain] = []
        for turn in turns:
            chain, line = self._context.chain(turn.fill.gap.index), self._line(turn.fill)
            track, masks = line.track, line.masks
            begin = self._context.begins(turn.fill.gap.index, self._begin)
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
        return [self._rule(turn.fill, written[:count]) for count in range(known, len(written) + 1)]

    def _run(self, turn: Turn, outputs: Outputs) -> Run | None:
        """The run of a turn up to the first refused draft token; None for a gap that waits, and is written ahead."""
        ids, logp, _ = parted(outputs.summaries)
        held = min(turn.held(ids[:, 0].tolist()), len(ids) - 1)
        self._remember(turn, held, outputs.best[held:])
        run = Run(ids[: held + 1], logp[: held + 1])
        for place, token in enumerate(turn.draft[: turn.forced]):
            put_first(run, place, token)
        if turn.waits:
            self._write_ahead(turn, run)
            return None
        temperature, seed = self._options.temperature, self._options.seed
        if temperature <= 0:
            return run
        return drawn(run, temperature, seed, turn.fill.key, len(turn.known), turn.forced)

    def _remember(self, turn: Turn, held: int, said: list[int]) -> None:
        """Note that the draft's first ``held`` tokens were right; ``said`` are the likeliest tokens from there on."""
        line = self._line(turn.fill)
        line.read, line.said = [*turn.known, *turn.draft[:held]], said[:1]
        line.behind = [DraftedToken(token, REFUSED, "refused", slot) for slot, token in enumerate(said[1:])]
        given = len(turn.draft) - len(turn.guesses)
        if self._drafts is not None and held >= given:
            self._drafts.verified(turn.guesses, held - given)

    def _take_masked(self, turns: Sequence[Turn], outputs: Iterator[Outputs]) -> None:
        """Keep what mask rows said, where all that was read before them holds, and forget their keys and values."""
        for turn in (turn for turn in turns if turn.masks):
            line, (ids, logp, _) = self._line(turn.fill), parted(next(outputs).summaries)
            line.masks.forget_from(0)
            if line.read == turn.written:
                likely = zip(ids[:, 0].tolist(), np.exp(logp[:, 0]).tolist(), strict=True)
                line.behind = [DraftedToken(token, one, "masked", slot) for slot, (token, one) in enumerate(likely, 1)]

    def _write_ahead(self, turn: Turn, run: Run) -> None:
        """Keep what the model wrote ahead for a gap that waits."""
        line, known = self._line(turn.fill), turn.known
        earlier = line.ahead[: len(known)]
        earlier += [Drafted(token, 1.0) for token in known[len(earlier) :]]
        new = [Drafted(token, float(np.exp(one))) for token, one in zip(run.tokens, run.logp[:, 0], strict=True)]
        line.complete = run.tokens[-1] == self._eog_id
        line.ahead = [*earlier, *(new[:-1] if line.complete else new)]
        line.complete = line.complete or len(line.ahead) >= turn.fill.most

    def _rule(self, fill: Fill, written: Sequence[int]) -> EndRule:
        """What may follow the tokens ``written``: no too early end, and no break of the healed text."""
        early = len(written) < fill.least
        allowed = fill.allowed.after(written) if fill.allowed is not None else None
        if allowed is not None:
            return EndRule(early, partial(only, allowed=torch.from_numpy(allowed).to(self._end.device)))
        prefix = fill.gap.prefix
        if prefix and (due := self._model.prefixes.left_of(prefix, written)):
            starting = self._model.prefixes.starting_flush if fill.indented else self._model.prefixes.starting_with
            return EndRule(early, partial(only, allowed=starting(due)))
        if fill.indented and self._model.tokenizer.decode_bytes(written) == prefix:
            return EndRule(early, self._begins_word)
        if len(self._fences) and (not written or self._begins_line(written)):
            return EndRule(early, self._closes)
        if self._ends_as_old and self._is_at_end(fill, written):
            return EndRule(early, partial(only, allowed=self._end))
        return EndRule(early)

    def _begins_word(self, row: Tensor) -> None:
        """Rule out the tokens in a row [V] that begin with a blank."""
        for blank in (b" ", b"\t"):
            row.index_fill_(0, self._model.prefixes.starting_with(blank), RULED_OUT)

    def _closes(self, row: Tensor) -> None:
        """Let a fence in a row [V] end the fill, as the end token does."""
        row[self._eog_id] = row[self._closing].logsumexp(-1)
        row.index_fill_(0, self._fences, RULED_OUT)

    def _is_at_end(self, fill: Fill, written: Sequence[int]) -> bool:
        """Whether the last tokens of the text that stood in the gap have just been written again."""
        old = self._layout.old(fill.gap.index)
        return self._begins_line(written) and tuple(written[-SAME_END:]) == old[-SAME_END:]

    def _begins_line(self, written: Sequence[int]) -> bool:
        """Whether the next token begins a line."""
        return bool(written) and self._model.tokenizer.token_bytes(written[-1]).endswith(b"\n")
