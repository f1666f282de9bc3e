"""One request and its answers: fills cut at stop strings, and the part of a running fill that will not change."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from lacuna_model.core.params import FillStats, InfillResult, Snapshot
from lacuna_model.text.diff import num_common
from lacuna_server.http.shapes.question import Question

Finish = Literal["stop", "length"]
# A JSON body: a struct, or a list or map where the client's format has one at the root.
Body = msgspec.Struct | list[Any] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The fills of one gap, best first, and the reason why the first one ended.

    ``words`` are the stop strings that the fills end before, "" where there is none.
    """

    texts: tuple[str, ...]
    finish: Finish = "stop"
    stats: FillStats = field(default_factory=FillStats)
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, question: Question, result: InfillResult) -> "Answer":
        """Return the answer to ``question``, which has one gap."""
        fills = [result.fills[0], *(fills[0] for fills in result.alternatives)]
        ends = [first_stop(fill, question.stop) for fill in fills]
        texts = tuple(fill[:at] for fill, (at, _) in zip(fills, ends, strict=True))
        unfit = question.form is not None and result.status != "ok"  # as where it is cut off: it lacks its form
        ended = texts[0] == fills[0] and (result.status == "deadline" or result.stats.tokens >= question.limit)
        words = tuple(word for _, word in ends)
        return cls(texts, "length" if ended or unfit else "stop", result.stats, words)

    @classmethod
    def early(cls, question: Question, snapshot: Snapshot, shown_ms: float) -> "Answer | None":
        """Return the answer to a question whose fill has not ended ``shown_ms`` after its first step; None for none.

        It is the complete lines that are committed, where a stop string is in them or the time limit is over. Of
        several candidates, and of an answer with a form, only the end tells where they stop.
        """
        is_late = question.patience_ms is not None and shown_ms >= question.patience_ms
        lines = final_lines(snapshot) if is_late or (question.stop and not question.ends_whole) else ""
        at, word = first_stop(f"{lines}\n", question.stop)
        if not lines or not (word or is_late):
            return None
        stats = FillStats(
            nfe=snapshot.nfe,
            steps=snapshot.step,
            tokens=_committed(snapshot),
            context_tokens=snapshot.context_tokens,
            cached_tokens=snapshot.cached_tokens,
        )
        return cls((lines[:at],), "stop" if word else "length", stats, (word,))


class Style(Protocol):
    """How a kind of clients reads answers; ``end`` are the bytes behind the last event."""

    end: bytes

    def whole(self, texts: Sequence[str], answer: Answer) -> Body:
        """Return the body of an answer that is not streamed; ``texts`` are its texts as they are shown."""
        ...

    def piece(self, text: str, share: float | None) -> Body:
        """Return the event of a piece of text, of which ``share`` (0..1) is committed (None: all)."""
        ...

    def last(self, texts: Sequence[str], answer: Answer, share: float | None) -> Iterable[Body]:
        """Return the last events: the rest of the first text, and the other texts."""
        ...


@dataclass
class Exchange:
    """A request, its question, and how its answer is told.

    ``ready`` is the answer where no model is needed, as it is shown. ``show`` builds what the client is shown around a
    fill (None: the fill itself). A fill is streamed in pieces that the client appends to each other; a shown one, and
    the best of several or one with a form, which are only known at the end, at once. With ``diffusing`` each event has
    the whole text so far.
    """

    question: Question
    style: Style
    stream: bool
    diffusing: bool = False
    show: Callable[[str], str] | None = None
    ready: Answer | None = None
    _sent: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if self.ready is None and not self.question.limit:
            self.ready = Answer((self._shown(""),), "length")

    def reply(self, answer: Answer) -> Body:
        """Return the body of an answer that is not streamed."""
        return self.style.whole(self._texts(answer), answer)

    def chunks(self, snapshot: Snapshot) -> Iterator[Body]:
        """Yield the events to stream after a step.

        A piece is sent once it is final. A deadline cuts a fill at a line, and stop strings cut it too. So only
        complete lines are final, without their last newline and without a possible start of a stop string.
        """
        stop = self.question.stop
        if self.question.ends_whole:
            return
        if self.diffusing:
            yield self.style.piece(
                self._shown(snapshot.fills[0]), _committed(snapshot) / max(len(snapshot.slots[0]), 1)
            )
        elif self.show is None and (text := self._next(without_stop_start(cut(final_lines(snapshot), stop), stop))):
            yield self.style.piece(text, None)

    def last(self, answer: Answer) -> Iterator[Body]:
        """Yield the events to stream at the end; the bytes ``style.end`` follow."""
        first, *others = self._texts(answer)
        rest, share = (first, 1.0) if self.diffusing else (self._next(first), None)
        yield from self.style.last([rest, *others], answer, share)

    def _next(self, text: str) -> str:
        """Return what follows in a text on what was sent of it."""
        if not text.startswith(self._sent):
            return ""
        fresh, self._sent = text[len(self._sent) :], text
        return fresh

    def _texts(self, answer: Answer) -> list[str]:
        return [text if answer is self.ready else self._shown(text) for text in answer.texts]

    def _shown(self, fill: str) -> str:
        return self.show(fill) if self.show else fill


def final_lines(snapshot: Snapshot) -> str:
    """Return the complete lines that are committed from the gap's start on, without their last newline."""
    text, committed = snapshot.fills[0], ""
    for slot in snapshot.slots[0]:
        if slot.state != "committed":
            break
        committed += slot.text
    if snapshot.slots[0]:
        # A character of several tokens is complete only in the fill: from the first difference on, nothing is final.
        text = text[: num_common(committed, text)]
    return text[: max(text.rfind("\n"), 0)]


def _committed(snapshot: Snapshot) -> int:
    return sum(slot.state == "committed" for slot in snapshot.slots[0])


def cut(text: str, stops: Sequence[str]) -> str:
    """Return ``text`` up to the first stop string in it."""
    return text[: first_stop(text, stops)[0]]


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, str]:
    """Return where the first stop string in ``text`` begins, and which it is; its end and "" without one."""
    found = ((at, stop) for stop in stops if stop and (at := text.find(stop)) >= 0)
    return min(found, default=(len(text), ""))


def without_stop_start(text: str, stops: Sequence[str]) -> str:
    """Return ``text`` without a possible start of a stop string at its end."""
    starts = (size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
    return text[: len(text) - max(starts, default=0)]
