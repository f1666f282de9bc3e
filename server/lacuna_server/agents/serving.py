"""Serves the tools over the Model Context Protocol, on stdin and stdout or over streamable HTTP."""

import asyncio
import io
import json
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from inspect import signature
from typing import Any

import anyio
import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette
from starlette.middleware import Middleware

from lacuna_model.core.errors import LacunaError
from lacuna_model.text.lines import well_formed
from lacuna_server.agents.tools import Outcome, Tools
from lacuna_server.http.addresses import HANDLERS
from lacuna_server.service.guard import Guard
from lacuna_server.wire.config import ServerConfig

INSTRUCTIONS = (
    "Lacuna edits code with a small model on this machine. Every tool returns a diff. Files are written only by a call "
    "with apply=true, or by refactor_apply; a text that may lose something is shown, and not written. Keep "
    "instructions short and the lines few: tens of lines, not whole files."
)


def server(tools: Tools, worker: ThreadPoolExecutor) -> MCPServer[Any]:
    """The server of the tools; they run one after the other in ``worker``, which has one thread."""
    made: MCPServer[Any] = MCPServer("lacuna", instructions=INSTRUCTIONS, log_level="WARNING")
    for call in tools.all:
        made.add_tool(_in_thread(call, worker))
    # The library drops arguments that a tool does not have, also a misspelt one that would keep a file as it is.
    for tool in made._tool_manager.list_tools():
        tool.fn_metadata.arg_model.model_config["extra"] = "forbid"
        tool.fn_metadata.arg_model.model_rebuild(force=True)
        tool.parameters["additionalProperties"] = False
    return made


def _in_thread(call: Callable[..., Outcome], worker: ThreadPoolExecutor) -> Callable[..., Awaitable[dict[str, Any]]]:
    """The tool as the library calls it, with the same arguments."""

    @wraps(call)
    async def run(*given: Any, **named: Any) -> dict[str, Any]:
        try:
            outcome = await asyncio.get_running_loop().run_in_executor(worker, partial(call, *given, **named))
        except (LacunaError, OSError) as error:
            raise ToolError(str(error)) from error
        return msgspec.structs.asdict(outcome)

    run.__signature__ = signature(call).replace(return_annotation=dict[str, Any])  # type: ignore[attr-defined]
    return run


class WellFormedLines(io.TextIOWrapper):
    """Lines of JSON in which no surrogate stands alone; the library drops a line with one, and its call hangs."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as TextIOWrapper itself
        """Return the next line."""
        line = super().readline(size)
        if "\\ud" not in line.lower():
            return line
        try:
            return json.dumps(well_formed(json.loads(line))) + "\n"
        except (ValueError, RecursionError):  # no JSON: the library answers as it does
            return line


async def serve_stdio(made: MCPServer[Any]) -> None:
    """Serve on stdin and stdout until stdin ends."""
    stdin = anyio.wrap_file(WellFormedLines(sys.stdin.buffer, "utf-8", errors="replace"))
    async with stdio_server(stdin) as (read_stream, write_stream):
        lowlevel = made._lowlevel_server  # the library's own ``run`` takes no streams
        await lowlevel.run(read_stream, write_stream, lowlevel.create_initialization_options())


def http_app(made: MCPServer[Any], token: str) -> Starlette:
    """The server over streamable HTTP at ``/mcp``, for clients of this machine that have the token."""
    app = made.streamable_http_app()
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.user_middleware.insert(0, Middleware(Guard, config=ServerConfig(token=token)))
    return app
