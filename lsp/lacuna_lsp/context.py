"""What the model would read of other files, as ``lacuna context`` shows it."""

import asyncio
import sys
from typing import Any

import msgspec
from lsprotocol import types

from lacuna_lsp.documents import Document
from lacuna_model.errors import RequestError


async def report(document: Document, position: types.Position, workspace: str) -> dict[str, Any]:
    """The snippets for a place, with reasons and scores; raises RequestError where ``lacuna context`` refuses.

    It looks at the file as it was saved. The choice needs the tokenizer and with it torch, so it is not made here.
    """
    column = len(document.line(position.line)[: document.offset(position) - _start(document, position)].decode())
    where = ["--workspace", workspace] if workspace else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "lacuna_server", "context", document.path),
        *("--at", f"{position.line + 1}:{column}", "--json", *where),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, said = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        raise RequestError(said.decode(errors="replace").strip().rpartition("\n")[2] or "lacuna context failed")
    answer: dict[str, Any] = msgspec.json.decode(out)
    return answer


def _start(document: Document, position: types.Position) -> int:
    return document.offset(types.Position(position.line, 0))
