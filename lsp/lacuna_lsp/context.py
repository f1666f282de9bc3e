"""Reports the snippets of other files that the model would read, as ``lacuna context`` does."""

import asyncio
import sys
from pathlib import PurePath
from typing import Any

import msgspec
from lsprotocol import types

from lacuna_lsp.documents.document import ClientDocument
from lacuna_model.core.errors import RequestError


async def report(document: ClientDocument, position: types.Position, workspace: str) -> dict[str, Any]:
    """Returns the snippets for a place, the most relevant first; raises RequestError if ``lacuna context`` fails.

    A subprocess selects them, because the selection needs the tokenizer and therefore torch.
    """
    if not PurePath(document.path).is_absolute():
        raise RequestError(f"{document.path} is in no folder yet: save it first")
    column = len(document.head(document.offset(position)))
    where = ["--workspace", workspace] if workspace else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "lacuna_server", "context", document.path),
        *("--at", f"{position.line + 1}:{column}", "--stdin", "--json", *where),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await process.communicate(document.text)
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        line = errors.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("lacuna: ")
        raise RequestError(line or "lacuna context failed")
    answer: dict[str, Any] = msgspec.json.decode(out)
    answer["snippets"].sort(key=lambda snippet: snippet["score"], reverse=True)
    return answer
