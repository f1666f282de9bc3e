"""The engine: takes an infill request, yields snapshots and returns the result."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Unpack

from msgspec.structs import replace

from lacuna_model.core import regions as region_groups
from lacuna_model.core import work
from lacuna_model.core.context import Layout, WindowOptions, finished, heal
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import (
    AnswerChat,
    ChooseSnippets,
    EditLines,
    FillGaps,
    FillStats,
    FollowChanges,
    InfillRequest,
    InfillResult,
    ReadContext,
    Region,
    Snapshot,
    Task,
)
from lacuna_model.decode.fill import shown
from lacuna_model.decode.gate import Judgement, shipped
from lacuna_model.editing.editor import Editor, answered
from lacuna_model.fim.loading import NO_TOKENS, LoadedFim
from lacuna_model.fim.measuring import first_costs
from lacuna_model.group_fill import fill_group, text_layout
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.prior.index import PiecewiseIndex, Segment
from lacuna_model.readers import Loaded, ReadOptions, load
from lacuna_model.snippets.signatures import fitting
from lacuna_model.syntax import language_for, stand_ins
from lacuna_model.tiers import CACHE_BYTES, DocumentSession, DocumentSessions, Tiers
from lacuna_model.workspace.project import Project, Workspaces, snippets_only

# Bytes before a gap that suffice to find the text that is healed.
HEALED_BYTES = 400
# The share of a model's positions that the context may have: fills and what is typed need the others.
LARGEST_WINDOW = 3 / 4
# Documents whose indexes are kept.
MAX_INDEXED = 8
# The steps of a request; without a snapshot, there is nothing new.
Steps = Generator[Snapshot | None, None, InfillResult]


class Engine:
    """Fills gaps with one loaded model; keeps the contexts of the documents used last, up to ``cache_bytes`` bytes."""

    def __init__(
        self,
        model: Loaded,
        *,
        window: WindowOptions | None = None,
        cache_bytes: int = CACHE_BYTES,
        workspaces: Workspaces | None = None,
    ) -> None:
        self.model = model
        self.workspaces = workspaces or Workspaces(model.tokenizer)
        self.gate = shipped()
        self._opened = lru_cache(MAX_INDEXED)(lambda document: PiecewiseIndex(model.tokenizer))
        self._snippet_budget = window.snippets if window else WindowOptions().snippets
        self._tiers = Tiers(model, window or WindowOptions(), cache_bytes)

    @property
    def sessions(self) -> DocumentSessions:
        """The documents' contexts."""
        return self._tiers.sessions

    @classmethod
    def load(
        cls,
        model: str = DEFAULT_MODEL,
        *,
        cache_bytes: int = CACHE_BYTES,
        window: int = 0,
        **how: Unpack[ReadOptions],
    ) -> "Engine":
        """Load a model by name, or the checkpoint in a folder; raises as :func:`.readers.load` does.

        ``window`` are the tokens of context that a fill reads, of which the model's positions have room; 0: the usual
        ones.
        """
        loaded = load(model, **how)
        for one in (loaded, loaded.smaller) if isinstance(loaded, LoadedFim) else ():
            if one is not None:
                first_costs(one)
        most = int(loaded.config.max_positions * LARGEST_WINDOW)
        return cls(loaded, window=WindowOptions.of(min(window, most)) if window else None, cache_bytes=cache_bytes)

    @property
    def follows_edits(self) -> bool:
        """Whether the model was made for next edits, as its file says."""
        return isinstance(self.model, LoadedFim) and self.model.edit_format is not None

    @property
    def positions(self) -> int:
        """The tokens that context and fills may have together."""
        return self.model.config.max_positions

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fill every region and return the result."""
        return finished(self.stream(request))

    def stream(self, request: InfillRequest, *, document: str = "") -> Generator[Snapshot, None, InfillResult]:
        """Fill every region, yielding a snapshot after each step; the generator's value is the result.

        Regions too far apart for one window are filled group after group; each group sees the fills of the earlier
        ones. ``document`` is the key of the context that is kept for later requests (by default the request's path). If
        a language's parser fails on the text, the request is filled without the syntax constraint, and ``message``
        reports that. Raises RequestError for regions that overlap, lie outside the text or cut a character, for a
        second fill of the same document at the same time, for options that the model does not have, and for gaps where
        it only answers chats.
        """
        region_groups.check_beside(request)
        if isinstance(self.model, LoadedFim) and (lacking := request.options.of_diffusion):
            names = ", ".join(lacking)
            raise RequestError(f"{self.model.name} is no diffusion checkpoint, which alone has these options: {names}")
        last = Snapshot(0, ("",) * len(request.regions), ((),) * len(request.regions))

        def show(seen: Snapshot | None) -> Snapshot:
            nonlocal last
            last = seen or last
            return last

        return (yield from work.in_steps(shown(self._checked_or_not(request, document or request.path), show)))

    def _checked_or_not(self, request: InfillRequest, document: str) -> Steps:
        """As :meth:`stream`, in steps that may each take as long as they need."""
        started = time.monotonic()
        region_groups.check(request.regions, request.text.encode())
        deadline = started + request.options.deadline_ms / 1e3 if request.options.deadline_ms else None
        generator = _GENERATORS[type(request.task)]
        try:
            result = yield from generator(self, request, document, deadline)
        except UnparsableError as error:  # the caller still gets a fill
            yield Snapshot(0, ("",) * len(request.regions), ((),) * len(request.regions))
            free = replace(request, options=replace(request.options, syntax=False))
            result = yield from generator(self, free, document, deadline)
            result = replace(result, message=result.message or f"the syntax is not checked: {error}")
        return replace(result, stats=replace(result.stats, ms=(time.monotonic() - started) * 1e3))

    def _project(self, request: InfillRequest) -> Project | None:
        return self.workspaces.follow(request.workspace) if request.workspace else None

    def _snippets(self, request: InfillRequest, document: str, deadline: float | None) -> Steps:
        assert isinstance(request.task, ChooseSnippets)
        return snippets_only(request, request.task.tokens, self._project(request), self.model.tokenizer, deadline)

    def _fill(self, request: InfillRequest, document: str, deadline: float | None) -> Steps:
        """Fill the regions, or read their context alone.

        Raises UnparsableError where the constraint needs a parse and the parser fails.
        """
        text, project = request.text.encode(), self._project(request)
        if isinstance(self.model, LoadedFim) and not self.model.fim.fills:
            raise RequestError(NO_TOKENS.format(self.model.name))
        newlines = region_groups.newlines(text, request.regions)
        spaced, regions = region_groups.spaced(text, request.regions, newlines)
        fills, judgements = list[str](), list[Judgement]()
        if project is not None and self._snippet_budget and not request.snippets:
            request = replace(request, snippets=project.choose(request, self.model.tokenizer, self._snippet_budget))
        elif request.signatures:
            told = fitting(request.signatures, self.model.tokenizer, self._snippet_budget)
            request = replace(request, snippets=(*request.snippets, *told))
        elsewhere = project.segments(request.path) if project is not None else []
        groups, due = region_groups.grouped(regions), 0
        if isinstance(request.task, FillGaps):
            if len(groups) == 1:
                due = request.task.due_ms
            else:  # later groups go on from one set of fills
                request = replace(request, task=replace(request.task, candidates=1))
        alone = replace(request, snippets=())

        def lay(session: DocumentSession, with_snippets: bool) -> Layout:
            return text_layout(spaced, regions, session.window, self.model, request if with_snippets else alone)

        with self._tiers.running(document, lay, due) as tier:
            if tier.nearest:
                request = alone
            began = time.monotonic()
            language = language_for(request.path, request.language) if request.options.syntax else None
            apart = language if len(groups) > 1 else None
            later = stand_ins(spaced, regions, apart, deadline) if apart is not None else []
            stats = FillStats(constraint_ms=(time.monotonic() - began) * 1e3)
            for group in groups:
                current, moved = region_groups.text_for(spaced, regions, fills, group)
                checked = current
                if later:  # the constraint sees stand-ins in the later gaps
                    checked, _ = region_groups.text_for(spaced, regions, fills, group, later[group.stop :])
                own = replace(request, text=current.decode(), regions=tuple(moved))
                known = self._segments(elsewhere, document, current, moved) if request.writes else []
                names = project.names_of(own) if project is not None else ()
                found = yield from fill_group(
                    tier.model,
                    tier.session,
                    own,
                    known,
                    deadline,
                    checked,
                    gate=self.gate,
                    names=names,
                    before=tuple(fills),
                    total=len(regions),
                )
                if not request.writes:
                    yield from self._opened(document).read(self._unhealed(current, moved))
                stats += found.stats
                if found.verdict.fills is None:
                    break
                fills += found.verdict.fills
                judgements += found.judgements
                if found.outcome == "deadline":
                    break
        self._tiers.filled()
        stats = replace(stats, model=tier.model.name, unread=tier.unread)
        message, gap = found.verdict.message, found.verdict.gap
        if found.verdict.fills is None:
            kept = region_groups.standing(text, request.regions)
            if gap is not None and len(request.regions) > 1:
                line = text.count(b"\n", 0, request.regions[group.start + gap].start) + 1
                message = f"line {line}: {message}"
            return InfillResult(found.outcome, kept, stats, message)
        fills = [*region_groups.closed(fills, newlines)]
        others = tuple(region_groups.closed(other, newlines) for other in found.others)
        # After a deadline, later groups keep the text that their regions hold.
        judgements += [Judgement(())] * (len(request.regions) - len(fills))
        fills += region_groups.standing(text, request.regions[len(fills) :])
        return InfillResult(
            found.outcome,
            tuple(fills),
            stats,
            message,
            others,
            confidence=tuple(one.lines for one in judgements),
            words=tuple(one.words for one in judgements),
        )

    def _edit(self, request: InfillRequest, document: str, deadline: float | None) -> Steps:
        """Rewrite the regions by their instructions or the last changes."""
        project = self._project(request)
        known = partial(self._segments, project.segments(request.path) if project is not None else [], document)
        by_rows = isinstance(request.task, FollowChanges) and isinstance(self.model, LoadedFim) and self.model.rewrites
        with self.sessions.running(document) if by_rows else self._instructed(document) as session:
            editor = Editor(self.model, session, request, known, deadline)
            result = yield from editor.edited()
        return replace(result, stats=sum(editor.stats, FillStats()))

    def _chat(self, request: InfillRequest, document: str, deadline: float | None) -> Steps:
        with self._instructed(document) as session:
            return (yield from answered(self.model, session, request, deadline))

    def _instructed(self, document: str) -> AbstractContextManager[DocumentSession]:
        """The context of answers to instructions, kept apart from that of the fills of the document."""
        return self.sessions.running(f"{document}\0instructed")

    def _segments(
        self, elsewhere: Sequence[Segment], document: str, text: bytes, regions: Sequence[Region]
    ) -> list[Segment]:
        """What the prior searches for the gaps of a text: ``elsewhere``, and the open document as it is there."""
        return [*elsewhere, *self._opened(document).segments(self._unhealed(text, regions))]

    def _unhealed(self, text: bytes, regions: Sequence[Region]) -> list[bytes]:
        """The texts between the gaps of the open document, as the prior searches them.

        The healed text before a gap is left out: the fill repeats it, and the prior would otherwise find it as its
        continuation.
        """
        texts = region_groups.texts_between(text, regions)
        for index, piece in enumerate(texts[:-1]):
            _, prefix = heal(piece[-HEALED_BYTES:].decode(errors="ignore"), self.model.tokenizer)
            texts[index] = piece.removesuffix(prefix)
        return texts


# What answers a request, with the key of its document, up to a ``time.monotonic`` instant.
_GENERATORS: dict[type[Task], Callable[[Engine, InfillRequest, str, float | None], Steps]] = {
    FillGaps: Engine._fill,
    ReadContext: Engine._fill,
    EditLines: Engine._edit,
    FollowChanges: Engine._edit,
    AnswerChat: Engine._chat,
    ChooseSnippets: Engine._snippets,
}
