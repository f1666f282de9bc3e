"""Checks the regions of a document, groups those that fit one window, and splices fills into the text."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import (
    MAX_CANDIDATES,
    AnswerChat,
    EditLines,
    FollowChanges,
    InfillRequest,
    Region,
    with_fills,
)
from lacuna_model.core.stopping import LineLimit, StopRule, goes_on
from lacuna_model.text.lines import indentation, within_character

# Bounds of one window: as many gaps as in training, and no further apart than the window reaches.
MAX_GAPS = 8
MAX_SPAN_BYTES = 3000
# Bytes around a gap that say where its fill ends.
MAX_REACH = 1 << 16
# What stands in a text where a gap is.
MARKER = b"<<fill>>"
DEFAULT_TOKENS = Region(0, 0).max_tokens
# What a request may hold beside its document. The model's tokens are fewer; to find out takes time, and others wait.
MAX_TEXTS, MAX_CHARACTERS = 5_000, 400_000
# What a region demands of its whole fill.
RULES = ("regex", "json_schema", "must_contain", "must_not_contain")


def one_line(tail: str) -> bool:
    """Whether a fill at a cursor is a single line: it is if the rest of the cursor's line, the ``tail``, has text."""
    return bool(tail.strip())


def at_cursor(at: int, tail: str, max_tokens: int, max_lines: int = 0) -> Region:
    """The region at the byte offset ``at``: at most ``max_lines`` lines (0: any number), one line before a ``tail``."""
    single = max_lines == 1 or one_line(tail)
    return Region(at, at, max_tokens, max_lines=1 if single else max_lines, single_line=single)


def marked(text: bytes, max_tokens: int = DEFAULT_TOKENS) -> list[Region]:
    """The regions of all markers in a text; before other text on its line a fill is one line."""
    found = re.finditer(re.escape(MARKER) + rb"(?=([^\r\n]*))", text)
    return [Region(one.start(), one.end(), max_tokens, single_line=bool(one[1].strip())) for one in found]


def at_marker(text: bytes, at: int, max_tokens: int = DEFAULT_TOKENS) -> Region | None:
    """The region of the marker that a byte offset is at or in; None where there is none."""
    return next((one for one in marked(text, max_tokens) if one.start <= at <= one.end), None)


def check(regions: Sequence[Region], text: bytes) -> None:
    """Raise RequestError unless the regions are ordered, disjoint, within ``text`` and between characters."""
    if not regions:
        raise RequestError("the request names no region to fill")
    previous = 0
    for region in regions:
        if not 0 <= region.start <= region.end <= len(text):
            raise RequestError(f"region {region.start}..{region.end} lies outside the text of {len(text)} bytes")
        if region.start < previous:
            raise RequestError(f"region {region.start}..{region.end} overlaps the one before or is out of order")
        for at in (region.start, region.end):
            if within_character(text, at):
                raise RequestError(f"offset {at} lies within a character")
        if region.max_tokens < 1:
            raise RequestError(f"region {region.start}..{region.end} may hold no token: max_tokens {region.max_tokens}")
        previous = region.end


def texts_beside(request: InfillRequest) -> list[str]:
    """The texts that a request holds beside its document, without its diagnostics."""
    texts = [part for snippet in (*request.snippets, *request.signatures) for part in (snippet.path, snippet.text)]
    match request.task:
        case AnswerChat(messages=messages):
            texts += [message.content for message in messages]
        case EditLines(instruction=instruction):
            texts.append(instruction)
        case FollowChanges(changes=changes):
            texts += [part for change in changes for part in (change.path, change.old, change.new)]
    for region in request.regions:
        texts += (region.regex, region.json_schema)
        texts += (*region.must_contain, *region.must_not_contain)
    return list(filter(None, texts))


def check_beside(request: InfillRequest) -> None:
    """Raise RequestError where what a request holds beside its document would take long to read, or cannot be kept."""
    if not 1 <= request.candidates <= MAX_CANDIDATES:
        raise RequestError(f"{request.candidates} candidates were asked for; 1 to {MAX_CANDIDATES} are possible")
    if isinstance(request.task, EditLines):
        EditLines.by(request.task.instruction)
    texts = texts_beside(request)
    length = sum(map(len, texts))
    if len(texts) > MAX_TEXTS or length > MAX_CHARACTERS:
        allowed = f"{MAX_TEXTS} of {MAX_CHARACTERS} characters are allowed"
        raise RequestError(f"the request has {len(texts)} texts of {length} characters beside the document; {allowed}")
    ruled = {name for region in request.regions for name in RULES if getattr(region, name)}
    if request.is_open_ended and ruled:  # an open fill may end anywhere, and so before it keeps the rule
        raise RequestError(f"an open fill keeps no {' or '.join(sorted(ruled))}; leave out the option open")


def newlines(text: bytes, regions: Sequence[Region]) -> list[str]:
    """The newline that each fill ends with because its region is whole lines before an indented line, else "".

    The newline is put into the text after the gap, so that the fill need not write it: a token of natural text joins a
    newline with the following indentation, and a fill rarely ends between the two.
    """
    found = []
    for region, end in zip(regions, texts_between(text, regions)[1:], strict=True):
        words = region.must_contain or region.must_not_contain
        ruled = region.single_line or region.regex or region.json_schema or words
        indented = end[:1] in (b" ", b"\t") and end.partition(b"\n")[0].strip()
        whole = text.endswith(b"\n", 0, region.start) and indented and not ruled
        line = "\r\n" if text.endswith(b"\r\n", 0, region.start) else "\n"
        found.append(line if whole else "")
    return found


def is_indented(before: bytes, after: bytes) -> bool:
    """Whether the blanks before a gap are the whole indentation of its line, so that its fill begins with a word.

    They are at the level of another line, or deeper than the line above where that opens a block or goes on.
    """
    above, _, head = before[-MAX_REACH:].rpartition(b"\n")
    if not head or head.strip():
        return False
    bare = above.rstrip()
    last = bare[bare.rfind(b"\n") + 1 :]
    if goes_on(last.decode(errors="ignore")):
        return len(head.expandtabs()) > len(indentation(last).expandtabs())
    as_deep = re.compile(b"^%s(?=\\S)" % re.escape(head), re.MULTILINE)
    return any(as_deep.search(text) is not None for text in (above, after[:MAX_REACH]))


def spaced(text: bytes, regions: Sequence[Region], lines: Sequence[str]) -> tuple[bytes, list[Region]]:
    """The text with ``lines``, a newline or nothing, inserted after every region, and the regions moved accordingly."""
    end = [msgspec.structs.replace(region, start=region.end) for region in regions]
    added = accumulate(map(len, lines[:-1]), initial=0)
    return with_fills(text, end, lines), [shifted(region, by) for region, by in zip(regions, added, strict=True)]


def closed(fills: Sequence[str], lines: Sequence[str]) -> tuple[str, ...]:
    """The fills with their ``lines`` at the end; an empty fill and one that ends with a newline get none."""
    pairs = zip(fills, lines, strict=False)
    return tuple(fill + line if fill and not fill.endswith("\n") else fill for fill, line in pairs)


def shifted(region: Region, by: int) -> Region:
    """The region in a text that has so many more bytes before it."""
    return msgspec.structs.replace(region, start=region.start + by, end=region.end + by)


def grouped(regions: Sequence[Region]) -> list[range]:
    """Indices of regions that are filled together, in order."""
    starts = [0]
    for index, region in enumerate(regions):
        if index - starts[-1] == MAX_GAPS or region.start - regions[starts[-1]].end > MAX_SPAN_BYTES:
            starts.append(index)
    return [range(first, end) for first, end in pairwise([*starts, len(regions)])]


def text_for(
    text: bytes, regions: Sequence[Region], fills: Sequence[str], group: range, later: Sequence[str] = ()
) -> tuple[bytes, list[Region]]:
    """The text with the regions before ``group`` filled, and the regions of ``group`` at their new offsets.

    Each region after the group holds its text in ``later``; without ``later`` it is empty, since the text in it (a
    marker, say) must not be read.
    """
    done, coming = regions[: group.start], regions[group.stop :]
    current = with_fills(text, [*done, *coming], [*fills[: group.start], *(later or [""] * len(coming))])
    offset = sum(len(fill.encode()) - (one.end - one.start) for one, fill in zip(done, fills, strict=False))
    return current, [shifted(regions[i], offset) for i in group]


def texts_between(text: bytes, regions: Sequence[Region]) -> list[bytes]:
    """The texts between the regions: n regions have n + 1."""
    ends = [0, *(region.end for region in regions)]
    starts = [*(region.start for region in regions), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def standing(text: bytes, regions: Sequence[Region]) -> tuple[str, ...]:
    """The text that each region holds."""
    return tuple(text[region.start : region.end].decode() for region in regions)


def stop_rules(text: bytes, regions: Sequence[Region], *, has_grammar: bool = True) -> Iterator[StopRule]:
    """The rule that ends the fill of each region, in a text that a grammar reads or not."""
    for index, region in enumerate(regions):
        following = regions[index + 1 : index + 2]
        reach = (following[0].start if following else region.end) + MAX_REACH
        before, after = text[max(region.start - MAX_REACH, 0) : region.start], text[region.end : reach]
        if len(before) < region.start:
            before = before[before.find(b"\n") + 1 :]
        until = len(text[region.end : following[0].start].decode()) if following else None
        limit = LineLimit.of(region, after)
        shown = after.decode(errors="ignore")  # it may end within a character
        yield StopRule(before.decode(errors="ignore"), shown, until, limit, has_grammar=has_grammar)
