"""The request, the snapshots and the result of a fill, as plain structs without torch.

Offsets are UTF-8 byte offsets into the document's text, as in tree-sitter. Callers that use other offsets (LSP
positions, terminal columns) convert them.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from lacuna_model.core.errors import RequestError
from lacuna_model.text.lines import splice, well_formed

Status = Literal["ok", "no_valid_fill", "deadline"]
SlotState = Literal["mask", "draft", "committed"]
ScheduleName = Literal["own", "entropy", "confidence", "single"]

MAX_CANDIDATES = 8
# By so many tokens, a text that an instruction asks for may usually be longer than the old one.
MORE_TOKENS = 512

# The range of MessagePack integers. JSON allows larger ones, and a request that arrives as JSON is passed on as
# MessagePack.
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One gap with its options.

    ``start`` and ``end`` are byte offsets; the fill replaces the bytes between them. The fill has at most
    ``max_tokens`` and at least ``min_tokens`` tokens, and at most ``max_lines`` lines (0: no limit). With
    ``single_line`` it ends before the first newline. The other fields constrain the fill in addition to the syntax of
    the file. The regular expression ``regex`` must match the whole fill; it may use neither look-around nor
    back-references. ``json_schema`` is a JSON schema that the fill must satisfy. Both may have 100,000 characters. The
    fill must contain every word in ``must_contain`` and no word in ``must_not_contain``.
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


def with_fills(text: bytes, regions: Sequence[Region], fills: Sequence[str]) -> bytes:
    """``text`` with every region replaced by its fill."""
    return splice(text, ((one.start, one.end, fill.encode()) for one, fill in zip(regions, fills, strict=True)))


class ChatMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message of a chat: ``content`` is its text, ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class Snippet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of another file that the model reads as context: ``text`` is the part, ``path`` the file.

    ``reason`` tells the user why it was chosen. A higher ``score`` means a better match. ``tokens`` is its length in
    the prompt, where it was chosen by the engine.
    """

    path: str
    text: str
    reason: str = ""
    score: float = 0.0
    tokens: Int64 = 0


class Diagnostic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``message`` of a compiler or linter about ``line``, counted from 0."""

    line: Int64
    message: str


class PastChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change that the user has made in the file ``path``: the lines ``old`` have become the lines ``new``."""

    path: str
    old: str
    new: str

    @property
    def bare(self) -> "PastChange":
        """The change without white space at the ends of its texts."""
        return PastChange(self.path, self.old.rstrip(), self.new.rstrip())


class FillGaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="fill"):
    """Fill the regions. ``candidates`` is the number of different sets of fills to find, best first.

    With ``open``, a fill of one region only has to be readable after what stands before it: brackets that are open
    there may stay open, and the fill ends before the first token that the grammar cannot read. The first line of a fill
    is due after ``due_ms`` milliseconds: where the model would take longer, since it has to read the context first, a
    smaller one answers, or the text nearest to the gap alone is read (0: never).
    """

    candidates: Int64 = 1
    open: bool = False
    due_ms: Int64 = 0


class EditLines(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="edit"):
    """Rewrite the regions, which are whole lines, as the ``instruction`` says.

    Their texts are the first drafts; ``max_tokens`` limits the tokens by which a new text may exceed the old one.
    """

    instruction: str

    @classmethod
    def by(cls, instruction: str) -> Self:
        """The task for an instruction; raises RequestError where it is empty."""
        if not instruction.strip():
            raise RequestError("the instruction is empty; say what to change")
        return cls(instruction)


class FollowChanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="follow"):
    """Rewrite the regions, which are whole lines, as it follows from the last ``changes``, the last one last.

    Unless the last one has deleted lines, none are deleted. ``max_tokens`` limits the tokens by which a
    new text may exceed the old one.
    """

    changes: tuple[PastChange, ...] = ()


class AnswerChat(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="chat"):
    """Answer the ``messages``. There is no document: the text is empty, and the fill of the only region is the answer.

    ``candidates`` is the number of different answers to find, best first.
    """

    messages: tuple[ChatMessage, ...]
    candidates: Int64 = 1


class ReadContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="encode"):
    """Fill nothing: encode the context of the regions for later requests; the fills are the texts that stand there."""


class ChooseSnippets(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="snippets"):
    """Fill nothing: read the workspace; the result has the snippets of at most ``tokens`` that a fill would read."""

    tokens: Int64


Task = FillGaps | EditLines | FollowChanges | AnswerChat | ReadContext | ChooseSnippets


class DecodeOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options for decoding.

    ``schedule``, ``steps``, ``entropy_bound`` and ``confidence`` are for diffusion checkpoints; any other model refuses
    them. ``steps`` is the maximum number of forward passes per block of slots (0: no maximum; 1: one pass fills all
    slots). ``schedule`` chooses the slots that are filled together in a pass: ``own`` as was
    published with the checkpoint, ``entropy`` as many as keep the sum of their entropies, without the largest, within
    ``entropy_bound`` (nats), ``confidence`` those whose best token is more probable than ``confidence`` (0..1), and
    ``single`` one slot.

    ``temperature`` 0 takes the most probable token; higher values sample, with the random ``seed``. After
    ``deadline_ms`` milliseconds the fill ends with the longest valid part (0: no deadline). With ``syntax``, no token
    is committed that would add a syntax error. With ``prior``, the open file and its workspace provide drafts, which
    the model verifies. With ``drafter``, so do masks that the model or a smaller one denoises, where there are any.
    With ``names``, in a workspace, a name that nothing declares gives way to likely tokens that lead to a known one.
    With ``tuned``, fills have the additions that were trained for them, if the model has some.
    """

    schedule: ScheduleName = "own"
    steps: Int64 = 0
    entropy_bound: float = 0.3
    confidence: float = 0.9
    temperature: float = 0.0
    seed: Int64 = 0
    deadline_ms: Int64 = 0
    syntax: bool = True
    prior: bool = True
    drafter: bool = True
    names: bool = True
    tuned: bool = True

    @property
    def of_diffusion(self) -> list[str]:
        """The given options that only a diffusion checkpoint has."""
        names, usual = ("schedule", "steps", "entropy_bound", "confidence"), DecodeOptions()
        return [name for name in names if getattr(self, name) != getattr(usual, name)]


class InfillRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document, its regions, which are in order and do not overlap, and the ``task``: what to do with them.

    ``workspace`` is the root folder of the project that the document belongs to ("": no other file is read).
    ``diagnostics`` are problems that a compiler or linter reports in the document. Both help to choose snippets of
    other files, unless the request has ``snippets``. ``signatures`` are what the editor's own language servers say of
    names at the gap; they come behind the snippets, within the same budget. ``path`` and ``workspace`` name the place
    for prompts and messages: what is not UTF-8 in them becomes U+FFFD.
    """

    text: str
    regions: tuple[Region, ...]
    task: Task = FillGaps()
    path: str = ""
    language: str = ""
    snippets: tuple[Snippet, ...] = ()
    options: DecodeOptions = DecodeOptions()
    workspace: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    signatures: tuple[Snippet, ...] = ()

    def __post_init__(self) -> None:
        for name in ("path", "workspace"):
            msgspec.structs.force_setattr(self, name, well_formed(getattr(self, name)))

    @property
    def candidates(self) -> int:
        """The number of different sets of fills to find."""
        return self.task.candidates if isinstance(self.task, FillGaps | AnswerChat) else 1

    @property
    def is_open_ended(self) -> bool:
        """Whether a fill may leave brackets open."""
        return isinstance(self.task, FillGaps) and self.task.open

    @property
    def rewrites(self) -> bool:
        """Whether the fills are new versions of the texts that stand in the regions."""
        return isinstance(self.task, EditLines | FollowChanges)

    @property
    def writes(self) -> bool:
        """Whether the answer is a text that the model writes."""
        return not isinstance(self.task, ReadContext | ChooseSnippets)

    def filled(self, fills: Sequence[str]) -> str:
        """The document with one text per region, as a result has them."""
        return with_fills(self.text.encode(), self.regions, fills).decode()


class SlotView(msgspec.Struct, frozen=True):
    """One slot in a snapshot: its ``text`` ("" while it is a mask), its ``state``, and its ``confidence`` (0..1)."""

    text: str
    state: SlotState
    confidence: float


class Snapshot(msgspec.Struct, frozen=True):
    """The fills after one step: for each region, ``fills`` has its text so far and ``slots`` its slots.

    Behind the committed slots of a fill-in-the-middle model are the drafts that its next pass verifies, and the masks
    that it denoises in the same pass. A slot that is then committed with another text was corrected.

    ``step`` counts the steps; it is 0 while the first context is being encoded. ``nfe``, ``vetoes``,
    ``deferrals`` and ``constraint_ms`` are the counts up to this step, as in FillStats. If the regions are too far
    apart for one window, they are filled in groups, and all counts start again from zero for each group. From the first
    step on, ``context_tokens`` and ``cached_tokens`` are those of FillStats.

    ``written`` has the committed text of each region so far, without drafts. ``confidence`` and ``words`` are those of
    its whole lines, as in InfillResult.
    """

    step: int
    fills: tuple[str, ...]
    slots: tuple[tuple[SlotView, ...], ...]
    nfe: int = 0
    vetoes: int = 0
    deferrals: int = 0
    constraint_ms: float = 0.0
    written: tuple[str, ...] = ()
    confidence: tuple[tuple[float, ...], ...] = ()
    words: tuple[tuple[tuple[int, float], ...], ...] = ()
    context_tokens: int = 0
    cached_tokens: int = 0


class FillStats(msgspec.Struct, frozen=True):
    """Counts and times of a fill.

    ``nfe`` counts the forward passes over open slots, ``steps`` the iterations of the denoise loop, and ``tokens`` the
    tokens of the fills. The context has ``context_tokens`` tokens, of which ``cached_tokens`` came from the cache.
    ``vetoes`` counts the tokens that the constraint refused, and ``deferrals`` the steps in which it admitted no token.
    ``constrained`` says whether there was a constraint. Times are in milliseconds: ``ms`` in total, ``encode_ms`` for
    encoding the context, and ``constraint_ms`` for waiting for the constraint. ``model`` is the one that answered;
    where it did so in place of a better one, or without the whole context, because that had to be read first, so many
    of its tokens were ``unread``.
    """

    nfe: int = 0
    steps: int = 0
    tokens: int = 0
    context_tokens: int = 0
    cached_tokens: int = 0
    vetoes: int = 0
    deferrals: int = 0
    ms: float = 0.0
    encode_ms: float = 0.0
    constraint_ms: float = 0.0
    constrained: bool = False
    model: str = ""
    unread: int = 0

    def __add__(self, part: "FillStats") -> "FillStats":
        """The stats of a fill in parts, with those of one more."""
        sums = {
            name: getattr(self, name) + getattr(part, name)
            for name in self.__struct_fields__
            if name not in ("constrained", "model")
        }
        return FillStats(**sums, constrained=part.constrained, model=part.model)


class InfillResult(msgspec.Struct, frozen=True):
    """The result of a fill: ``fills`` has one text per region, which is the old one where no valid fill was found.

    If ``status`` is not ``ok``, ``message`` has the reason. ``stats`` has counts and times. If the request asked for
    several candidates, ``alternatives`` has the further sets of fills, best first; there may be fewer than requested.
    ``confidence`` has, for every line of each fill, the probability (0..1) that the fill is right up to the end of that
    line; it is empty for a region that was left unchanged. In open delivery ``words`` has the same for words of the
    first line: the characters up to the end of each, and the probability. ``snippets`` are those asked for; if there
    are none, ``message`` has the reason. ``likelihoods`` has, for each region that follows changes,
    the log-probability (nats) of each line, given those before. ``refused`` has, for each region with an instruction,
    the text that was refused ("" where none was), for a person to look at. ``warnings`` has, for each region with an
    instruction, what a person should look at before taking its new text ("" where nothing is).
    """

    status: Status
    fills: tuple[str, ...]
    stats: FillStats
    message: str = ""
    alternatives: tuple[tuple[str, ...], ...] = ()
    confidence: tuple[tuple[float, ...], ...] = ()
    words: tuple[tuple[tuple[int, float], ...], ...] = ()
    snippets: tuple[Snippet, ...] = ()
    likelihoods: tuple[tuple[float, ...], ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """What a person should look at before taking the new texts, in a sentence; "" where nothing is."""
        return "; ".join(filter(None, self.warnings))
