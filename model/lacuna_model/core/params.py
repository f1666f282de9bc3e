"""The request, the snapshots and the result of a fill, as plain structs without torch.

Offsets are UTF-8 byte offsets into the document's text, as tree-sitter and the model count them. Callers that count
otherwise (LSP positions, terminal columns) convert them.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Status = Literal["ok", "no_valid_fill", "deadline", "cancelled"]
SlotState = Literal["mask", "draft", "committed"]
ScheduleName = Literal["entropy", "confidence", "single"]

MAX_CANDIDATES = 8

# The range of MessagePack integers. JSON allows larger ones, and a request that arrives as JSON is passed on as
# MessagePack.
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One gap with its options.

    ``start`` and ``end`` are byte offsets; the fill replaces the bytes between them. The fill has at most
    ``max_tokens`` tokens and at least ``min_tokens``, and at most ``max_lines`` lines (0: any number). With
    ``single_line`` it ends before the first newline. ``regex`` (matches the whole fill; linear time, so without
    look-around and back-references), ``json_schema`` and the word lists ``must_contain`` and ``must_not_contain``
    constrain the text of this region in addition to the syntax of its file.
    """

    start: Int64
    end: Int64
    max_tokens: Int64 = 96
    min_tokens: Int64 = 0
    max_lines: Int64 = 0
    single_line: bool = False
    regex: str = ""
    json_schema: str = ""
    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()


class Snippet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``text`` of another file, ``path``, that the model reads as context.

    ``reason`` tells the user why it was chosen; a higher ``score`` means that it fits better.
    """

    path: str
    text: str
    reason: str = ""
    score: float = 0.0


class Diagnostic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``message`` of a compiler or linter about ``line``, counted from 0."""

    line: Int64
    message: str


class DecodeOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the denoise loop decodes.

    ``steps`` bounds the forward passes per block of slots (0: as many as the schedule needs; 1: everything in one
    pass). ``schedule`` chooses the slots to commit: ``entropy_bound`` (nats) and ``confidence`` steer the two adaptive
    ones; ``single`` commits one slot a step. ``corrections`` is the number of committed slots that may change.
    ``temperature`` 0 takes the best token, otherwise tokens are drawn with ``seed``. ``deadline_ms`` 0 means none. With
    ``syntax`` no token is committed that would add a syntax error. With ``prior`` drafts from the open file and its
    workspace are proposed, and the model verifies them. With ``encode_only`` nothing is filled: the context is encoded
    for later requests, and the result keeps the text.
    """

    schedule: ScheduleName = "entropy"
    steps: Int64 = 0
    entropy_bound: float = 0.3
    confidence: float = 0.9
    temperature: float = 0.0
    seed: Int64 = 0
    corrections: Int64 = 0
    deadline_ms: Int64 = 0
    syntax: bool = True
    prior: bool = True
    encode_only: bool = False


class InfillRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document and the regions to fill in it, ordered and disjoint.

    ``candidates`` asks for that many different sets of fills, best first. ``workspace`` is the root folder of the
    project that the document belongs to ("": none is read). ``diagnostics`` are those of the document itself. Both help
    to choose snippets of other files, unless ``snippets`` gives them.
    """

    text: str
    regions: tuple[Region, ...]
    candidates: Int64 = 1
    path: str = ""
    language: str = ""
    snippets: tuple[Snippet, ...] = ()
    options: DecodeOptions = DecodeOptions()
    workspace: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()


class SlotView(msgspec.Struct, frozen=True):
    """One slot as a snapshot shows it: its ``text`` ("" while it is a mask), ``state`` and ``confidence`` in 0..1."""

    text: str
    state: SlotState
    confidence: float


class Snapshot(msgspec.Struct, frozen=True):
    """The canvas after one step: per region its text so far in ``fills`` and its ``slots``.

    ``step`` is 0 while a long context is being encoded, before anything is drafted. ``nfe``, ``corrections``,
    ``vetoes``, ``deferrals`` and ``constraint_ms`` are counted so far, as in FillStats. Like ``step`` they start from
    zero for each group of regions where regions are too far apart for one window.
    """

    step: int
    fills: tuple[str, ...]
    slots: tuple[tuple[SlotView, ...], ...]
    nfe: int = 0
    corrections: int = 0
    vetoes: int = 0
    deferrals: int = 0
    constraint_ms: float = 0.0


class FillStats(msgspec.Struct, frozen=True):
    """Counts and times of a fill.

    ``nfe`` counts every forward pass over open slots, ``steps`` the turns of the denoise loop, ``tokens`` those of the
    delivered fills. The context has ``context_tokens``; ``cached_tokens`` of them came from the cache. ``corrections``
    counts committed slots that changed, ``vetoes`` tokens that the constraint refused, and ``deferrals`` how often it
    admitted nothing; ``constrained`` is false where there was no constraint. Times are milliseconds: ``ms`` in total,
    ``encode_ms`` for the context, and ``constraint_ms`` that the loop waited for the constraint.
    """

    nfe: int = 0
    steps: int = 0
    tokens: int = 0
    context_tokens: int = 0
    cached_tokens: int = 0
    corrections: int = 0
    vetoes: int = 0
    deferrals: int = 0
    ms: float = 0.0
    encode_ms: float = 0.0
    constraint_ms: float = 0.0
    constrained: bool = False


class InfillResult(msgspec.Struct, frozen=True):
    """The end of a fill: ``fills`` has one text per region; ``text`` is the whole document after filling.

    Where ``status`` is not ok, ``message`` gives the reason. ``stats`` are its costs. ``alternatives`` are
    further sets of fills, next best first, where the request asked for several candidates; there may be fewer than
    asked for. ``confidence`` has for every line of each fill the probability, in 0..1, that the fill is right up to the
    end of that line; it is empty for regions that were left unchanged.
    """

    status: Status
    text: str
    fills: tuple[str, ...]
    stats: FillStats
    message: str = ""
    alternatives: tuple[tuple[str, ...], ...] = ()
    confidence: tuple[tuple[float, ...], ...] = ()
