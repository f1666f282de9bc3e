"""Fills gaps of a document by a command: markers, placeholder bodies, what follows from a change."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Annotated, Literal

from lsprotocol import types
from msgspec import Meta
from tree_sitter import Node

from lacuna_lsp.document import ClientDocument
from lacuna_lsp.edit.bulk import Arguments, Document, Refactor, source_of, sources
from lacuna_lsp.offers import near
from lacuna_lsp.server import Server
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MORE_TOKENS, Diagnostic, EditLines, FillGaps, Region
from lacuna_model.core.regions import marked
from lacuna_model.editing.names import is_documentation
from lacuna_model.next_edit.changes import RecentChange, TokenizedText
from lacuna_model.next_edit.following import ELSEWHERE, PREVIEWED, SURE, candidates, chosen
from lacuna_model.syntax import Language, language_for
from lacuna_model.text.diff import unified
from lacuna_model.text.lines import LINE_END
from lacuna_server.refactor.places.source import Source, ancestors, walk
from lacuna_server.refactor.plan import PlannedEdit
from lacuna_server.refactor.rewriting.refactoring import Found, Refactoring, whole_lines
from lacuna_server.refactor.rewriting.rewrite import Rewrite, first_line

_STUB = re.compile(
    rb"(pass|\.\.\.|raise NotImplementedError(\(.*\))?|(todo|unimplemented)!\(.*\);?|"
    rb"(panic\(|throw ).*\b(todo|not ?implemented).*)",
    re.IGNORECASE | re.DOTALL,
)
_FUNCTION = re.compile("function|method")
_TODO = re.compile(rb"\b(TODO|FIXME)\b")


def stubs(text: bytes, language: Language, start: int, end: int) -> list[Region]:
    """Returns the bodies between two byte offsets that hold only ``...``, ``pass``, ``TODO`` or the like.

    Comments and docstrings in a body are kept, because they describe the code to fill in.
    """
    functions = (node for node in walk(language.parser().parse(text).root_node) if _FUNCTION.search(node.type))
    bodies = (body for node in functions if (body := node.child_by_field_name("body")) is not None)
    found = (_stub(body) for body in bodies if body.start_byte < end and body.end_byte > start)
    return [region for region in found if region is not None]


def scope(text: bytes, language: Language, at: int) -> tuple[str, int, int]:
    """Returns the name ("" for the file), start and end of the class, else function, else file around a byte offset."""
    node = language.parser().parse(text).root_node.descendant_for_byte_range(at, at)
    around = [] if node is None else [node, *ancestors(node)]
    named = [one for one in around if one.child_by_field_name("body") and one.child_by_field_name("name")]
    if not named:
        return "", 0, len(text)
    chosen = next((one for one in named if not _FUNCTION.search(one.type)), named[0])
    name = chosen.child_by_field_name("name")
    return ((name and name.text) or b"").decode(), chosen.start_byte, chosen.end_byte


def _stub(body: Node) -> Region | None:
    comments = [child for child in body.named_children if "comment" in child.type]
    statements = [child for child in body.named_children if "comment" not in child.type]
    if len(statements) > 1 and is_documentation(statements[0]):
        statements = statements[1:]
    if len(statements) == 1 and _STUB.fullmatch(statements[0].text or b""):
        return Region(statements[0].start_byte, statements[0].end_byte)
    if statements or not (body.text or b"").startswith(b"{"):
        return None
    if not any(_TODO.search(comment.text or b"") for comment in comments):
        return None
    return Region(comments[-1].end_byte, body.end_byte - 1)


class Propagate(Arguments, frozen=True):
    """``lacuna.propagate``: makes the change nearest to a position at all similar places of the file or workspace."""

    text_document: Document
    position: types.Position
    scope: Literal["file", "workspace"] = "workspace"


async def followed(
    ls: Server, wanted: Propagate, awake: Callable[[ClientDocument], Awaitable[None]]
) -> tuple[Refactoring, list[Source]]:
    """Returns the user's last change as a refactor of the places that follow it, and the searched texts.

    The rules over tokens find the places. Where they find none, the model rewrites the lines near the change; ``awake``
    waits for it. Raises RequestError if nothing was changed since the document was saved.
    """
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    new = source_of(document)
    saved, row, language = document.saved.decode(), wanted.position.line, new.language.name
    change = await asyncio.to_thread(RecentChange.at, saved, new.text, row, new.language)
    if change is None:
        raise RequestError("nothing has been changed in this file since it was saved")
    where = Refactor(text_document=wanted.text_document if wanted.scope == "file" else None, language=language)
    looked_at, _ = await sources(ls, where, frozenset([language]))
    if all(source.path != new.path for source in looked_at):
        looked_at.append(new)

    def by_tokens() -> list[Found]:
        return [(one, list(_rewrites(change, one, here=one.path == new.path))) for one in looked_at]

    found = await asyncio.to_thread(by_tokens)
    if not any(items for _, items in found):
        await awake(document)
        written = await near(ls.engine, document, change, (), row)
        lines = new.data.splitlines(keepends=True)
        for one in written:
            if one.probability >= SURE:
                start = len(b"".join(lines[: one.row]))
                end = start + len(one.old.encode())
                found.append((new, [Rewrite(start, end, (one.new,), first_line(one.old))]))
    return Refactoring("Make the change everywhere", lambda _: found, frozenset([language])), looked_at


def _rewrites(change: RecentChange, source: Source, *, here: bool) -> Iterator[Rewrite]:
    """Yields the places of a source that follow a change; ``here``: the change was made in this source."""
    tokens = change.new if here else TokenizedText(source.text)
    found = candidates(change, tokens, where="here" if here else "elsewhere")
    for one in chosen(found, PREVIEWED if here else ELSEWHERE):
        place, text = one.place, tokens.text
        label = first_line(text[text.rfind("\n", 0, place.start) + 1 :].split("\n", 1)[0])
        yield Rewrite(source.offset(place.start), source.offset(place.end), (place.text,), label)


MAX_REGIONS = 64  # per request; further regions go into the next requests


class FillRegions(Arguments, frozen=True):
    """``lacuna.fillRegions``: fills the ranges, all markers or all empty bodies, optionally only ``within`` a range."""

    text_document: Document
    ranges: tuple[types.Range, ...] = ()
    select: Literal["ranges", "markers", "bodies"] = "ranges"
    within: types.Range | None = None


def regions(document: ClientDocument, arguments: FillRegions) -> list[Region]:
    """Returns the regions that a command selects, in order; raises RequestError if there are none."""
    start, end = (0, document.size) if arguments.within is None else document.bounds(arguments.within)
    if arguments.select == "markers":
        found = [r for r in marked(document.text) if start <= r.start and r.end <= end]
    elif arguments.select == "bodies":
        language = language_for(document.path, document.language)
        found = stubs(document.text, language, start, end) if language is not None else []
    else:
        found = [region(document, span) for span in arguments.ranges]
    found.sort(key=lambda r: r.start)
    if not found:
        raise RequestError(f"there is nothing to fill in {document.path}")
    return found


def region(document: ClientDocument, span: types.Range) -> Region:
    """Returns the region of a range; a range within one line gets a fill of one line."""
    start, end = document.bounds(span)
    within_line = start < end and span.start.line == span.end.line
    return Region(start, end, single_line=within_line)


async def fill(ls: Server, document: ClientDocument, wanted: Sequence[Region]) -> list[PlannedEdit]:
    """Fills the regions and returns the replacements; leaves out regions without a valid fill."""
    found: list[PlannedEdit] = []
    waiting = [wanted[first : first + MAX_REGIONS] for first in range(0, len(wanted), MAX_REGIONS)]
    while waiting:
        some = waiting.pop(0)
        result = await ls.infill(document, some)
        if result.status == "ok":
            for one, text in zip(some, result.fills, strict=True):
                label = f"fill line {document.position(one.start).line + 1}"
                found.append(PlannedEdit(one.start, one.end, LINE_END.sub(document.newline, text), label))
        elif len(some) > 1:  # one region without a valid fill must not stop the others
            half = len(some) // 2
            waiting[:0] = some[:half], some[half:]
    return found


class Regenerate(Arguments, frozen=True):
    """``lacuna.regenerate``: finds other texts for a range; ``choose`` lets the user pick one at once."""

    text_document: Document
    range: types.Range
    count: Annotated[int, Meta(ge=1, le=8)] = 3
    choose: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()


async def alternatives(ls: Server, document: ClientDocument, arguments: Regenerate) -> list[str]:
    """Returns other texts for a range, best first, without the current text; raises RequestError if none is valid."""
    wanted = region(document, arguments.range)
    current = document.text[wanted.start : wanted.end].decode()  # read now: the user may edit it while the engine works
    task = FillGaps(arguments.count + 1)
    result = await ls.infill(document, [wanted], task, diagnostics=arguments.diagnostics)
    if result.status != "ok":
        raise RequestError(result.message or "nothing valid was found for this range")
    texts = [LINE_END.sub(document.newline, fills[0]) for fills in (result.fills, *result.alternatives)]
    return [text for text in dict.fromkeys(texts) if text != current][: arguments.count]


class EditArguments(Arguments, frozen=True):
    """``lacuna.edit``: rewrites the lines of a range as the ``instruction`` says."""

    text_document: Document
    range: types.Range
    instruction: str
    diagnostics: tuple[Diagnostic, ...] = ()


async def rewritten(ls: Server, document: ClientDocument, wanted: EditArguments) -> tuple[list[PlannedEdit], str, str]:
    """Returns the replacement of the range's lines, none without a change, the message, and a diff of what was refused.

    With a replacement, the message says what to look at before it is taken. Raises RequestError for an empty
    instruction, and where no text was found.
    """
    task = EditLines.by(wanted.instruction)
    start, end = whole_lines(document.text, *document.bounds(wanted.range))
    old = document.text[start:end].decode()  # read now: the user may edit it while the engine works
    region = Region(start, end, max_tokens=MORE_TOKENS)
    result = await ls.infill(document, [region], task, diagnostics=wanted.diagnostics)
    if result.status != "ok":
        message, path = result.message or "no valid text was found", document.path
        if any(result.refused):
            diff = unified(old, result.refused[0], path, f"{path} (refused)")
            return [], f"{message}; nothing was changed", f"{diff}\n" if diff else ""
        raise RequestError(message)
    (new,) = result.fills
    if new == old:
        return [], result.message, ""
    title, warning = wanted.instruction.strip().partition("\n")[0], result.warning
    label = f"{title} (look at this: {warning})" if warning else title
    return [PlannedEdit(start, end, new, label)], warning or result.message, ""
