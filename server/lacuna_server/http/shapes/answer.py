"""One request and its answers: fills cut at stop strings, and the part of a running fill that will not change."""

import itertools
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from lacuna_model.core.params import FillStats, InfillResult, Snapshot
from lacuna_server.http.shapes.question import Question

Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The fills of one gap, best first, and the reason why the first one ended.

    ``words`` are the stop strings that the fills end before, "" where there is none.
    """

    texts: tuple[str, ...]
    finish: Finish
    stats: FillStats
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
    def so_far(cls, question: Question, snapshot: Snapshot) -> "Answer":
        """Return the answer to a question whose time limit is over: the complete lines that are committed."""
        return cls((cut(final_lines(snapshot), question.stop),), "length", _stats(snapshot))

    @classmethod
    def stopped(cls, question: Question, snapshot: Snapshot) -> "Answer | None":
        """Return the answer to a question whose fill has a stop string in its final lines; None where it has none.

        Of several candidates, and of an answer with a form, only the end tells.
        """
        if not question.stop or question.candidates > 1 or question.form is not None:
            return None
        if not (lines := final_lines(snapshot)):
            return None
        at, word = first_stop(f"{lines}\n", question.stop)
        return cls((lines[:at],), "stop", _stats(snapshot), (word,)) if word else None


# The answer to a warm-up.
NOTHING = Answer(("",), "length", FillStats())


class Deltas:
    """Splits a running fill into pieces of text that the client appends to each other.

    A piece is sent once it is final. A deadline cuts a fill at a line, and stop strings cut it too. So only complete
    lines are final, without their last newline and without a possible start of a stop string.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._sent = ""

    def after(self, snapshot: Snapshot) -> str:
        """Return the text that has become final with this step, "" where there is none."""
        return self._next(without_stop_start(cut(final_lines(snapshot), self._stops), self._stops))

    def last(self, text: str) -> str:
        """Return the rest of the whole ``text``."""
        return self._next(text)

    def _next(self, text: str) -> str:
        if not text.startswith(self._sent):
            return ""
        fresh = text[len(self._sent) :]
        self._sent = text
        return fresh


def final_lines(snapshot: Snapshot) -> str:
    """Return the complete lines that are committed from the gap's start on, without their last newline."""
    fill, slots = snapshot.fills[0], snapshot.slots[0]
    committed = ""
    for slot in slots:
        if slot.state != "committed":
            break
        committed += slot.text
    # A character of several tokens is complete only in the fill: from the first difference on, nothing is final.
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(committed, fill, strict=False)))
    text = committed[:same] if slots else fill
    return text[: max(text.rfind("\n"), 0)]


def progress(snapshot: Snapshot) -> float:
    """Return the share of slots that are committed, 0..1."""
    return _committed(snapshot) / max(len(snapshot.slots[0]), 1)


def _stats(snapshot: Snapshot) -> FillStats:
    return FillStats(
        nfe=snapshot.nfe,
        steps=snapshot.step,
        tokens=_committed(snapshot),
        context_tokens=snapshot.context_tokens,
        cached_tokens=snapshot.cached_tokens,
    )


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


# A JSON body: a struct, or a list or map where the client's format has one at the root.
Body = msgspec.Struct | list[Any] | dict[str, Any]

DONE = b"data: [DONE]\n\n"


class Exchange(Protocol):
    """A request as the handler uses it. ``ready`` is the answer where no model is needed, otherwise None."""

    question: Question
    ready: Answer | None
    stream: bool
    end: bytes

    def reply(self, answer: Answer) -> Body:
        """Return the body of an answer that is not streamed."""
        ...

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """Return the events to stream after a step."""
        ...

    def last(self, answer: Answer) -> Iterable[Body]:
        """Return the events to stream at the end; the bytes ``end`` follow."""
        ...


class Stamp(msgspec.Struct, frozen=True):
    """The fields that all parts of one OpenAI answer share; ``created`` is in seconds since 1970."""

    id: str
    created: int
    model: str

    @classmethod
    def new(cls, kind: str, model: str) -> "Stamp":
        """Return a stamp with a new id, which begins with ``kind``."""
        return cls(f"{kind}-{uuid.uuid4().hex}", int(time.time()), model)


class Usage(msgspec.Struct, frozen=True):
    """Tokens of the context, of the fill, and of both."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, answer: Answer) -> "Usage":
        """Return the usage of an answer."""
        stats = answer.stats
        return cls(stats.context_tokens, stats.tokens, stats.context_tokens + stats.tokens)


def event(body: Body) -> bytes:
    """Encode one server-sent event. The JSON has no spaces: llama.vim looks for ``"content":"`` in the raw text."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"
