"""Rewrites the regions of a request one after another, by instructions or by the last changes, and answers chats."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import msgspec

from lacuna_model.core.constraint import FillSoFar
from lacuna_model.core.context import Layout
from lacuna_model.core.params import (
    AnswerChat,
    EditLines,
    FillStats,
    FollowChanges,
    InfillRequest,
    InfillResult,
    Region,
    Snapshot,
    Status,
    with_fills,
)
from lacuna_model.core.regions import standing
from lacuna_model.editing import tidy
from lacuna_model.editing.change import Asked, AskedChange
from lacuna_model.editing.judge import accepted_text
from lacuna_model.editing.prompts import EditedPart, chat_layout, edit_layout, rows_layout, window_layout
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.group_fill import encoded, fill_group
from lacuna_model.prior.index import Segment
from lacuna_model.readers import Loaded
from lacuna_model.syntax import constraint_for
from lacuna_model.tiers import DocumentSession

UNCHANGED = "nothing to change"
SAME = "the new text is the same as the old one"
LATE = "the time ran out; the text stays as it is"
# Nothing is to do where that is likelier.
NOTHING = 0.5
Known = Callable[[bytes, Sequence[Region]], Sequence[Segment]]
Steps = Generator[Snapshot | None, None, "Rewriting"]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What became of one region: its new text, or why there is none; ``log_probs`` (nats) of the text's lines.

    ``refused`` is what the model wrote instead, and ``warning`` what a person should look at in the text.
    """

    outcome: Status
    text: str | None
    why: str = ""
    log_probs: tuple[float, ...] = ()
    refused: str = ""
    warning: str = ""


class Editor:
    """Edits the document of one request; ``known`` gives the segments that the prior searches in a text.

    ``stats`` has the counts of every region that was read.
    """

    def __init__(
        self, model: Loaded, session: DocumentSession, request: InfillRequest, known: Known, deadline: float | None
    ) -> None:
        self._model, self._session, self._request = model, session, request
        self._known, self._deadline = known, deadline
        self._instruction = request.task.instruction if isinstance(request.task, EditLines) else None
        self._changes = request.task.changes if isinstance(request.task, FollowChanges) else ()
        self.stats: list[FillStats] = []

    def edited(self) -> Generator[Snapshot | None, None, InfillResult]:
        """Rewrite every region; the generator's value is the result without its counts.

        Later regions are read with the new text of the earlier ones. A region that gets no valid text keeps its own; so
        do all that are left when the deadline runs out. Raises RequestError where a region cannot be rewritten.
        """
        text, regions = self._request.text.encode(), self._request.regions
        parts = [EditedPart.of(text, region) for region in regions]
        olds = standing(text, regions)
        fills = list(olds)
        ends: list[Rewriting] = []
        for index, part in enumerate(parts):
            if ends and ends[-1].outcome == "deadline":
                ends.append(ends[-1])
                continue
            shift = sum(len(fill.encode()) - len(old.encode()) for fill, old in zip(fills, olds, strict=True))
            moved = part.moved(with_fills(text, regions, fills), shift)
            ends.append((yield from self._rewritten(moved, tuple(fills[:index]))))
            if (new := ends[-1].text) is not None:
                fills[index] = part.whole(new)
        return self._result(parts, fills, olds, ends)

    def _result(
        self, parts: Sequence[EditedPart], fills: Sequence[str], olds: Sequence[str], ends: Sequence[Rewriting]
    ) -> InfillResult:
        """The result of all regions: it is a failure only where no region has a new text."""
        failed = [end for end in ends if end.text is None]
        status: Status = "ok" if len(failed) < len(ends) else "no_valid_fill"
        message = failed[0].why if failed else UNCHANGED if list(fills) == list(olds) else ""
        if failed and len(fills) > 1:
            message = f"{len(failed)} of {len(fills)} regions stay as they are: {message}"
        refused = tuple(part.whole(end.refused) if end.refused else "" for part, end in zip(parts, ends, strict=True))
        warned = tuple(end.warning for end in ends)
        return InfillResult(
            "deadline" if ends[-1].outcome == "deadline" else status,
            tuple(fills),
            FillStats(),
            message,
            confidence=((),) * len(fills),
            likelihoods=() if self._instruction is not None else tuple(end.log_probs for end in ends),
            refused=refused if any(refused) else (),
            warnings=warned if any(warned) else (),
        )

    def _rewritten(self, part: EditedPart, before: tuple[str, ...]) -> Steps:
        """Rewrite a part; ``before`` are the texts of earlier regions.

        An answer to an instruction in which something is wrong is asked for once more, with what was wrong. Of two
        answers that are not as they should be, one with a warning comes before a refused one.
        """
        if (instruction := self._instruction) is None:
            return (yield from self._following(part, before))
        layout = edit_layout(self._model, part, self._request, instruction)
        first = yield from self._answered(part, layout, before)
        if (first.text not in (None, part.text) and not first.warning) or first.outcome == "deadline":
            return first
        layout = edit_layout(self._model, part, self._request, instruction, first.why or first.warning or SAME)
        second = yield from self._answered(part, layout, before)
        if second.text in (None, part.text) or (second.warning and first.text is not None):
            return first
        return second

    def _following(self, part: EditedPart, before: tuple[str, ...]) -> Steps:
        """What follows the changes, by the model's edit rows if it has any."""
        model = self._model
        if not (isinstance(model, LoadedFim) and model.rewrites and self._changes):
            layout = window_layout(model, part, self._request, self._changes)
            return (yield from self._answered(part, layout, before))
        layout, cache = rows_layout(model, self._session, part, self._changes[-1]), self._session.cache
        assert isinstance(cache, FimContext)
        assert layout.header is not None
        read = yield from encoded(cache.updating(layout), self._deadline)
        if not read.context_tokens:
            self.stats.append(read)
            return Rewriting("deadline", None, LATE)
        nothing = cache.ends_at_once(layout.header, sorted(model.fim.ends)) > NOTHING
        self.stats.append(msgspec.structs.replace(read, nfe=1))
        if nothing:
            return Rewriting("ok", part.text)
        end = yield from self._answered(part, layout, before)
        self.stats[-1] = msgspec.structs.replace(self.stats[-1], context_tokens=0, cached_tokens=0)
        return end

    def _answered(self, part: EditedPart, layout: Layout, before: tuple[str, ...]) -> Steps:
        region, total = part.region, len(self._request.regions)
        single = msgspec.structs.replace(self._request, text=part.document.decode(), regions=(region,))
        known = self._known(part.document, [region])
        found = yield from fill_group(
            self._model, self._session, single, known, self._deadline, layout=layout, before=before, total=total
        )
        self.stats.append(found.stats)
        if found.outcome == "deadline":
            return Rewriting(found.outcome, None, LATE)
        if found.verdict.fills is None:
            return Rewriting(found.outcome, None, found.verdict.message or "no valid text was found")
        written = part.written(found.verdict.fills[0])
        if found.cut:
            why = f"the new text has over {region.max_tokens} tokens more than the old"
            return Rewriting("no_valid_fill", None, why, refused=written)
        if self._instruction is not None:
            return self._whole(part, self._instruction, written)
        return self._followed(part, written, found.judgements[0].log_probs)

    def _followed(self, part: EditedPart, written: str, log_probs: Sequence[float]) -> Rewriting:
        """The new text; without its losses of lines, unless the last changes have deleted lines, too."""
        last = [one.bare for one in self._changes[-1:]]
        deletes = any(len(one.new.splitlines()) < len(one.old.splitlines()) for one in last)
        whole = written if deletes else tidy.without_losses(part.text, written)
        if whole != written and not self._is_valid(part, whole):
            return Rewriting("no_valid_fill", None, "the new text leaves out lines of the region")
        blank = [0.0] * part.before.count("\n")
        return Rewriting("ok", whole, "", (*blank, *tidy.carried(log_probs, written, whole)))

    def _whole(self, part: EditedPart, instruction: str, written: str) -> Rewriting:
        """The answer to an instruction without what nobody asked for; none where something is wrong with it."""
        start, end, request = len(part.above), part.region.end, self._request
        change = AskedChange(part.document, start, end, Asked(instruction), request.path, request.language)
        if hint := tidy.hint(part.old, written):
            return Rewriting("no_valid_fill", None, f"the new text leaves out lines: {hint}", refused=written)

        def is_valid(new: str) -> bool:
            return new.startswith(part.indentation) and self._is_valid(part, new.removeprefix(part.indentation))

        found = accepted_text(change, part.indentation + written, is_valid)
        if found.text is None:
            return Rewriting("no_valid_fill", None, f"the new text {found.why}", refused=written)
        warning = f"the new text {', '.join(found.warnings)}" if found.warnings else ""
        return Rewriting("ok", found.text.removeprefix(part.indentation), warning=warning)

    def _is_valid(self, part: EditedPart, fill: str) -> bool:
        """Whether ``fill`` may stand in the place of a part, as the constraint of the request sees it."""
        request, tokenizer = self._request, self._model.tokenizer
        tokens, syntax = tuple(tokenizer.encode(fill)), request.options.syntax
        constraint = constraint_for(
            part.document, [part.region], request.path, request.language, tokenizer, syntax=syntax
        )
        return constraint.verdict([FillSoFar(tokens, len(tokens), ended=True)], late=False).fills is not None


def answered(
    model: Loaded, session: DocumentSession, request: InfillRequest, deadline: float | None
) -> Generator[Snapshot | None, None, InfillResult]:
    """Answer a chat; the generator's value is the result, its only fill the answer."""
    region = msgspec.structs.replace(request.regions[0], start=0, end=0)
    single = msgspec.structs.replace(request, text="", regions=(region,), path="", language="")
    assert isinstance(request.task, AnswerChat)
    layout = chat_layout(model, request.task.messages)
    found = yield from fill_group(model, session, single, [], deadline, layout=layout)
    fills = found.verdict.fills or ("",)
    return InfillResult(found.outcome, fills, found.stats, found.verdict.message, found.others, ((),))
