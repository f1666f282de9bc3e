"""Rewrites the lines of a range by an instruction, and finds instructions that a problem suggests."""

from collections.abc import Iterator

from lsprotocol import types

from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.edit.arguments import EditArguments
from lacuna_lsp.session.client_session import ClientSession
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MORE_TOKENS, EditLines, Region
from lacuna_model.text.diff import unified
from lacuna_server.refactor.plan import PlannedEdit
from lacuna_server.refactor.rewriting.refactoring import whole_lines

# Longer messages of compilers are cut in the title of a code action.
TITLE_LENGTH = 60


async def rewritten(
    session: ClientSession, document: ClientDocument, wanted: EditArguments
) -> tuple[list[PlannedEdit], str, str]:
    """Returns the replacement of the range's lines, none without a change, the message, and a diff of what was refused.

    Raises RequestError for an empty instruction, and where no text was found.
    """
    task = EditLines.by(wanted.instruction)
    start, end = whole_lines(document.text, *document.bounds(wanted.range))
    old = document.text[start:end].decode()  # read now: the user may edit it while the engine works
    region = Region(start, end, max_tokens=MORE_TOKENS)
    result = await session.infill(document, [region], task, diagnostics=wanted.diagnostics)
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


def problems(context: types.CodeActionContext) -> Iterator[tuple[str, str, types.Range]]:
    """Yields title, instruction and range of an edit that solves each problem of a code action's context."""
    for one in context.diagnostics:
        said = " ".join(one.message.split())
        short = said if len(said) <= TITLE_LENGTH else f"{said[: TITLE_LENGTH - 1]}…"
        yield f"Solve: {short}", f"Solve this problem in line {one.range.start.line + 1} of the file: {said}", one.range
