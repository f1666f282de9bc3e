"""Fills several regions of a document together, finds alternatives for a selection, and rewrites lines as told."""

from collections.abc import Sequence

from lsprotocol import types

from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.edit import placeholders
from lacuna_lsp.edit.arguments import EditArguments, FillRegions, Regenerate
from lacuna_lsp.server import Server
from lacuna_lsp.suggest import polish
from lacuna_lsp.suggest.polish import Habits
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MORE_TOKENS, EditLines, FillGaps, Region
from lacuna_model.core.regions import marked
from lacuna_model.syntax import language_for
from lacuna_model.text.diff import unified
from lacuna_server.refactor.plan import PlannedEdit
from lacuna_server.refactor.rewriting.refactoring import whole_lines

MAX_REGIONS = 64  # per request; further regions go into the next requests


def regions(document: ClientDocument, arguments: FillRegions) -> list[Region]:
    """Returns the regions that a command selects, in order; raises RequestError if there are none."""
    start, end = (0, document.size) if arguments.within is None else document.bounds(arguments.within)
    if arguments.select == "markers":
        found = [r for r in marked(document.text) if start <= r.start and r.end <= end]
    elif arguments.select == "bodies":
        language = language_for(document.path, document.language)
        found = placeholders.stubs(document.text, language, start, end) if language is not None else []
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
    for first in range(0, len(wanted), MAX_REGIONS):
        found += await _fill(ls, document, wanted[first : first + MAX_REGIONS])
    return found


async def _fill(ls: Server, document: ClientDocument, wanted: Sequence[Region]) -> list[PlannedEdit]:
    result = await ls.infill(document, wanted)
    if result.status != "ok":
        # One region without a valid fill must not stop the others.
        if len(wanted) == 1:
            return []
        half = len(wanted) // 2
        return [*await _fill(ls, document, wanted[:half]), *await _fill(ls, document, wanted[half:])]
    habits = Habits.of(document.text.decode(), document.newline)
    return [
        PlannedEdit(
            one.start, one.end, polish.adapt(text, habits), f"fill line {document.position(one.start).line + 1}"
        )
        for one, text in zip(wanted, result.fills, strict=True)
    ]


async def alternatives(ls: Server, document: ClientDocument, arguments: Regenerate) -> list[str]:
    """Returns other texts for a range, best first, without the current text; raises RequestError if none is valid."""
    wanted = region(document, arguments.range)
    current = document.text[wanted.start : wanted.end].decode()  # read now: the user may edit it while the engine works
    task = FillGaps(arguments.count + 1)
    result = await ls.infill(document, [wanted], task, diagnostics=arguments.diagnostics)
    if result.status != "ok":
        raise RequestError(result.message or "nothing valid was found for this range")
    habits = Habits.of(document.text.decode(), document.newline)
    texts = [polish.adapt(fills[0], habits) for fills in (result.fills, *result.alternatives)]
    return [text for text in dict.fromkeys(texts) if text != current][: arguments.count]


async def rewritten(ls: Server, document: ClientDocument, wanted: EditArguments) -> tuple[list[PlannedEdit], str, str]:
    """Returns the replacement of the range's lines, none without a change, the message, and a diff of what was refused.

    Raises RequestError for an empty instruction, and where no text was found.
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
    return [PlannedEdit(start, end, new, wanted.instruction.strip().partition("\n")[0])], result.message, ""
