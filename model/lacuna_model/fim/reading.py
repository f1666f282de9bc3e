"""Reads fills with a fill-in-the-middle model: each pass verifies the drafts of all gaps, token by token.

Each row's logits predict the next token given all tokens before it. A draft token is accepted while it is the likeliest
one in the preceding row; the row after the last accepted token yields one token more. So every pass commits at least
one token, and greedy fills are those of the model alone, left to right, whatever the drafts are (arXiv 2211.17192).
A model that has mask rows may read some behind a draft: they propose the draft of the next pass.

A gap waits for the gaps before it, since its prompt will hold their fills.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lacuna_model.core.constraint import UNKNOWN_LOG_PROB, Run
from lacuna_model.core.context import Layout
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.fill import Drafted, Fill, Key
from lacuna_model.decode.sampling import RULED_OUT, drawn, only
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.costs import DraftedToken
from lacuna_model.fim.draft_model import DraftModel
from lacuna_model.fim.drafts import Drafts, WrittenFill
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.passes import AskedChain, Wanted
from lacuna_model.fim.track import EndRule, Summaries, Track, num_unread, parted
from lacuna_model.text.diff import rejoined

# Tokens drafted for one pass, at most, and where a text is rewritten; how many pay is for `costs.PassCosts` to say.
MAX_DRAFTED = 15
MAX_OF_OLD = 63
# So many last tokens of an old text are its end, where it is written again.
SAME_END = 12
GREEDY = DecodeOptions()


@dataclass(slots=True)
class FillTokens:
    """The tokens after a gap's prompt: the middle token and the fill.

    ``guess`` is what was taken back. ``written`` are its tokens as they were seen last, and ``found`` those that the
    last pass has found, the model's own next one included; ``behind`` is what it said of the slots after that in mask
    rows, which are read in ``mask_track``.
    """

    track: Track
    mask_track: Track
    guess: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    behind: list[DraftedToken] = field(default_factory=list)

    def see(self, written: list[int]) -> None:
        """Note the tokens of the fill; if some were taken back, they are a guess at what is to come."""
        if len(written) < len(self.written):
            self.guess = self.written
        self.written = written


@dataclass(slots=True)
class FillInPass:
    """The tokens that a pass reads for a fill: the ``known`` ones, and a ``draft`` after them to verify.

    The first ``forced`` tokens of the draft are accepted whatever their logits. Where drafts may follow, ``ahead`` is
    what is known for them; ``guesses`` are those that the draft ends with, and ``num_masks`` rows of masks are behind.
    """

    fill: Fill
    known: list[int]
    draft: list[int]
    forced: int = 0
    ahead: WrittenFill | None = None
    guesses: list[DraftedToken] = field(default_factory=list)
    num_masks: int = 0

    @property
    def written(self) -> list[int]:
        """The known tokens, and those of the draft."""
        return [*self.known, *self.draft]

    def num_accepted(self, best: Sequence[int]) -> int:
        """How many tokens of the draft are accepted, given the ``best`` token of every row."""
        pairs = enumerate(zip(self.draft, best, strict=False))
        refused = (index for index, (token, found) in pairs if index >= self.forced and token != found)
        return next(refused, len(self.draft))


@dataclass(frozen=True, slots=True)
class Announced:
    """A pass that was announced for some ``fills``: its ``parts``, and what it has to read."""

    fills: Sequence[Fill]
    parts: list[FillInPass]
    wanted: Wanted


class FimReader:
    """Reads one request's fills after a document's prompts, with the temperature and the seed of its ``options``."""

    def __init__(
        self,
        model: LoadedFim,
        context: FimContext,
        drafts: Drafts,
        layout: Layout,
        options: DecodeOptions = GREEDY,
        smaller: DraftModel | None = None,
    ) -> None:
        """A ``smaller`` model may draft for it."""
        self.passes = 0
        answering, device = layout.answering, model.transformer.device
        fences = sorted(answering.fences) if answering is not None else []
        self._fences = torch.tensor(fences, dtype=torch.long, device=device)
        self._closing = torch.tensor([model.tokenizer.eog_id, *fences], device=device)
        self._ends_as_old = layout.header is not None or (answering is not None and answering.as_old)
        tuned = model.fill_kind if layout.answering is None and options.tuned else ""
        self._kind = tuned if layout.header is None else layout.header.kind
        self._end = torch.tensor([model.tokenizer.eog_id], device=device)
        self._layout, self._options = layout, options
        self._model = model
        self._context = context
        self._drafts, self._smaller = drafts, smaller
        self._eog_id = model.tokenizer.eog_id
        self._all_tokens: dict[Key, FillTokens] = {}
        self._settled: list[list[int]] = [[] for _ in layout.gaps[1:]]
        self._announced: Announced | None = None
        self._beside = 0  # rows of other requests in the last pass

    @torch.inference_mode()
    def announcing(self, fills: Sequence[Fill]) -> Generator[None, None, None]:
        """Decide what the next pass reads for the open fills, which another request's pass may then read, too."""
        if self._announced is not None:
            announced, now = ([(one.status, one.tokens) for one in some] for some in (self._announced.fills, fills))
            if announced == now:  # as they were, or as they were foreseen
                for part in self._announced.parts:
                    self._tokens_of(part.fill).see(list(part.fill.tokens))
                return
            self.withdraw()
        yield from self._announcing(fills)

    @torch.inference_mode()
    def going_ahead(self, fills: Sequence[Fill], runs: Sequence[Run | None]) -> Iterator[None]:
        """Begin the pass behind whole ``runs`` on a device that works beside the host, if none of them ends its fill.

        The end of a fill would change the prompts of later gaps, and what was read of them.
        """
        if not self._model.passes.is_asynchronous:
            return
        foreseen = list[Fill]()
        for fill, run in zip(fills, runs, strict=True):
            if run is not None:
                fill = replace(fill, tokens=[*fill.tokens, *run.tokens])
                if len(fill.tokens) >= fill.most or self._eog_id in run.tokens:
                    return
            foreseen.append(fill)
        yield from self._announcing(foreseen, ahead=True)

    def _announcing(self, fills: Sequence[Fill], *, ahead: bool = False) -> Generator[None, None, None]:
        """Announce the pass for fills as they are, or ``ahead`` for those that are foreseen."""
        self._settle(fills)
        parts: list[FillInPass] = []
        for fill in fills:
            if fill.is_open and not self._waits(fill, fills):
                if not ahead:
                    self._tokens_of(fill).see(list(fill.tokens))
                parts.append(self._part(fill))
        yield from self._drafting(parts)
        if parts:
            wanted, passes = self._wanted(parts), self._model.passes
            self._announced = Announced(fills, parts, wanted)
            passes.announce(wanted)
            if passes.is_asynchronous:
                if passes.is_expecting:
                    yield
                passes.begin(wanted)

    def drafted(self, fill: Fill) -> list[Drafted]:
        """What the announced pass verifies behind the tokens of a fill, and the masks."""
        parts, place = self._announced.parts if self._announced else [], len(fill.tokens)
        part = next((one for one in parts if one.fill.key == fill.key), None)
        if part is None or not fill.is_open or part.written[:place] != fill.tokens:
            return []
        known = [Drafted(token, 1.0) for token in part.written[place : len(part.written) - len(part.guesses)]]
        guesses = [Drafted(guess.token, guess.probability) for guess in part.guesses]
        return [*known, *guesses, *[Drafted(None)] * part.num_masks]

    def withdraw(self) -> None:
        """Take back what was announced; the device may be at it."""
        if self._smaller is not None:
            self._smaller.withdraw()
        if self._announced is not None:
            self.passes += self._announced.wanted.has_begun
            self._announced = None
        self._model.passes.withdraw(self._context.reader)

    @torch.inference_mode()
    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """The run of every open fill that does not wait: the draft as far as it holds, and the model's next token."""
        assert self._announced is not None
        parts, wanted = self._announced.parts, self._announced.wanted
        self._announced = None
        outputs = iter(self._model.passes.read(wanted))
        self.passes += 1
        self._beside = wanted.beside
        runs = {part.fill.key: self._run(part, next(outputs)) for part in parts}
        self._take_masked(parts, outputs)
        return [runs.get(fill.key) for fill in fills]

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
            self._settled = settled
            self._context.settle(settled)
            self._drafts.filled(settled)
            if self._smaller is not None:
                self._smaller.settle(settled)

    def _part(self, fill: Fill) -> FillInPass:
        """The tokens that the next pass reads for a fill, before any are guessed."""
        known, tokens = list(fill.tokens), self._tokens_of(fill)
        if begun := list(fill.begun):
            return FillInPass(fill, known, begun, forced=len(begun))
        rewrites = self._layout.old(fill.gap.index) or tokens.guess
        healed = None if known or rewrites else self._model.tokenizer.token(fill.gap.prefix)
        # The healed text is likely to be the token that it is.
        part = FillInPass(fill, known, [healed] if healed is not None and fill.most > 1 else [])
        if part.written or rewrites or not fill.gap.prefix:
            room = fill.most - 1 - len(known)  # one place is left for the token behind the draft
            most = min(room, MAX_OF_OLD if rewrites else MAX_DRAFTED) - len(part.draft)
            behind = tokens.behind if part.written == tokens.found else []
            part.ahead = WrittenFill(part.written, most, tokens.guess, behind)
        return part

    def _drafting(self, parts: Sequence[FillInPass]) -> Generator[None, None, None]:
        """Add guesses at what follows to the parts, and masks."""
        drafts, ahead = self._drafts, {part.fill.key: part.ahead for part in parts if part.ahead is not None}
        if self._smaller is not None:
            doubtful = {key: one for key, one in ahead.items() if one.room > 0 and not drafts.is_sure(key[1], one)}
            for key, run in (yield from self._smaller.drafting(doubtful)).items():
                ahead[key].run = run
        unread = num_unread(self._context.chain(part.fill.gap.index) for part in parts)
        rows = unread + self._beside + sum(len(part.draft) + 1 for part in parts)
        for part in parts:
            if part.ahead is not None:
                gap = part.fill.gap.index
                guesses = drafts.draft(gap, part.ahead, rows)
                before = sum(len(one.ids) for one in self._context.chain(gap))
                left = self._model.config.max_positions - (before + 1 + len(part.written) + len(guesses))
                part.guesses, part.num_masks = drafts.with_masks(guesses, rows, left)
                part.draft = [*part.draft, *(guess.token for guess in part.guesses)]
            rows += len(part.guesses) + part.num_masks

    def _tokens_of(self, fill: Fill) -> FillTokens:
        if fill.key not in self._all_tokens:
            reader = self._context.reader
            self._all_tokens[fill.key] = FillTokens(reader.new(self._kind), reader.new())
        return self._all_tokens[fill.key]

    def _wanted(self, parts: Sequence[FillInPass]) -> Wanted:
        """What the parts need of a pass: outputs after each one's known tokens, each that is drafted, and each mask."""
        asked: list[AskedChain] = []
        masked: list[AskedChain] = []
        for part in parts:
            chain, tokens = self._context.chain(part.fill.gap.index), self._tokens_of(part.fill)
            track, masks = tokens.track, tokens.mask_track
            begin = self._context.begins(part.fill.gap.index)
            track.become([begin, *part.written], sum(len(one.ids) for one in chain))
            track.forget_from(len(part.known))  # the last known token is read again, for its output
            asked.append(AskedChain([*chain, track], self._rules(part), part.num_accepted))
            masks.become([-1 - mask for mask in range(part.num_masks)], track.start + len(track.ids))
            masks.forget_from(0)
            if part.num_masks:
                masked.append(AskedChain([*chain, track, masks], [EndRule()] * part.num_masks, len))
        return Wanted(self._context.reader, [*asked, *masked])

    def _rules(self, part: FillInPass) -> list[EndRule]:
        """What may follow a part's known tokens, and each that is drafted."""
        written = part.written
        return [self._rule(part.fill, written[:count]) for count in range(len(part.known), len(written) + 1)]

    def _run(self, part: FillInPass, outputs: Summaries) -> Run:
        """The run of a part up to the first refused draft token."""
        ids, logp = parted(outputs)
        accepted = min(part.num_accepted(ids[:, 0].tolist()), len(ids) - 1)
        self._remember(part, accepted, int(ids[accepted, 0]))
        run = self._rejoined(part, Run(ids[: accepted + 1], logp[: accepted + 1]))
        for place, token in enumerate(part.draft[: part.forced]):
            run.put_first(place, token)
        temperature, seed = self._options.temperature, self._options.seed
        if temperature <= 0:
            return run
        return drawn(run, temperature, seed, part.fill.key, len(part.known), part.forced)

    def _rejoined(self, part: FillInPass, run: Run) -> Run:
        """The run up to where a header's fill is as the old text again, with the rest of that; else the run."""
        if self._layout.header is None:
            return run
        old, written = self._layout.old(part.fill.gap.index), [*part.known, *run.tokens]
        for count in range(len(part.known) + 1, len(written) + 1):
            if (place := rejoined(old, written[:count])) is not None:
                rest, own = [*old[place:], self._eog_id], run.part(0, count - len(part.known))
                ids = np.full((len(rest), run.ids.shape[1]), self._eog_id, dtype=run.ids.dtype)
                logp = np.full(ids.shape, UNKNOWN_LOG_PROB, dtype=run.logp.dtype)
                ids[:, 0], logp[:, 0] = rest, 0.0
                return Run(np.concatenate((own.ids, ids)), np.concatenate((own.logp, logp)))
        return run

    def _remember(self, part: FillInPass, accepted: int, following: int) -> None:
        """Note that the draft's first ``accepted`` tokens were right, and the token ``following`` them."""
        tokens = self._tokens_of(part.fill)
        tokens.found, tokens.behind = [*part.known, *part.draft[:accepted], following], []
        given = len(part.draft) - len(part.guesses)
        if accepted >= given:
            self._drafts.verified(part.guesses, accepted - given)

    def _take_masked(self, parts: Sequence[FillInPass], outputs: Iterator[Summaries]) -> None:
        """Keep what mask rows tell, where all that was read before them holds, and forget their keys and values."""
        for part in (part for part in parts if part.num_masks):
            tokens, (ids, logp) = self._tokens_of(part.fill), parted(next(outputs))
            tokens.mask_track.forget_from(0)
            if tokens.found[:-1] == part.written:
                likely = zip(ids[:, 0].tolist(), np.exp(logp[:, 0]).tolist(), strict=True)
                slots = enumerate(likely, start=1)
                tokens.behind = [DraftedToken(token, one, "masked", slot) for slot, (token, one) in slots]

    def _rule(self, fill: Fill, written: Sequence[int]) -> EndRule:
        """What may follow the tokens ``written``: no too early end, and no break of the healed text."""
        early = len(written) < fill.least
        allowed = fill.allowed.after(written) if fill.allowed is not None else None
        if allowed is not None:
            return EndRule(early, partial(only, allowed=torch.from_numpy(allowed).to(self._end.device)))
        prefix = fill.gap.prefix
        if prefix and (due := self._model.prefixes.left_of(prefix, written)):
            allowed_ids = self._model.prefixes.starting_with(due, flush=fill.indented)
            return EndRule(early, partial(only, allowed=allowed_ids))
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
