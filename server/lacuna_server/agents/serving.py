"""Serves the tools over the Model Context Protocol, on stdin and stdout or over streamable HTTP."""

import asyncio
import hmac
import io
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from pydantic import Field
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lacuna_model.core.errors import LacunaError
from lacuna_model.text.lines import well_formed
from lacuna_server.agents.tools import Outcome, Tools
from lacuna_server.http.addresses import HANDLERS

INSTRUCTIONS = (
    "Lacuna edits code with a small model on this machine. Every tool returns a diff. Files are written only by a call "
    "with apply=true, or by refactor_apply; a text that may lose something is shown, and not written. Keep "
    "instructions short and the lines few: tens of lines, not whole files."
)
PathText = Annotated[str, Field(description="A file, relative to the server's first folder or absolute.")]
Lines = Annotated[str, Field(description="Whole lines A:B, counted from 1.")]
OldText = Annotated[
    str, Field(description="The whole lines as they are. With it, lines may be left out; other lines are refused.")
]
Version = Annotated[
    str, Field(description="The version of the file that the numbers belong to, from an earlier answer.")
]
Apply = Annotated[bool, Field(description="Write the file. Without it, nothing is written.")]


def server(tools: Tools, worker: ThreadPoolExecutor) -> MCPServer[Any]:
    """The server of the tools; they run one after the other in ``worker``, which has one thread."""

    async def run(call: Callable[[], Outcome]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        try:
            outcome = await loop.run_in_executor(worker, call)
        except (LacunaError, OSError) as error:
            raise ToolError(str(error)) from error
        return {name: getattr(outcome, name) for name in Outcome.__struct_fields__}

    made: MCPServer[Any] = MCPServer("lacuna", instructions=INSTRUCTIONS, log_level="WARNING")

    @made.tool()
    async def fill_gaps(
        path: PathText,
        at: Annotated[str, Field(description="A position LINE:COL (line from 1, column from 0).")] = "",
        version: Version = "",
        apply: Apply = False,
    ) -> dict[str, Any]:
        """Fill the gap at a position, or without one all <<fill>> markers of a file; the syntax stays valid."""
        return await run(partial(tools.fill_gaps, path, at, version=version, apply=apply))

    @made.tool()
    async def edit(
        path: PathText,
        instruction: str,
        lines: Lines = "",
        old_text: OldText = "",
        version: Version = "",
        apply: Apply = False,
    ) -> dict[str, Any]:
        """Rewrite lines of a file as an instruction says, such as "add a docstring". Nothing else changes.

        After an edit that adds or removes lines, name the lines' text or the version: numbers that moved are refused.
        """
        call = partial(tools.edit, path, lines, instruction, old_text=old_text, version=version, apply=apply)
        return await run(call)

    @made.tool()
    async def refactor_preview(
        pattern: Annotated[str, Field(description="Code to find, with $NAME and $$$NAMES as metavariables.")],
        template: Annotated[str, Field(description="The new code; the model fills each <<fill>>.")] = "",
        instruction: Annotated[str, Field(description="Instead of a template: what to change in these lines.")] = "",
        paths: Annotated[list[str] | None, Field(description="Files and folders; by default, all.")] = None,
        language: str = "",
    ) -> dict[str, Any]:
        """Rewrite all places of a pattern, and show the diff. The answer names the plan for refactor_apply."""
        call = partial(tools.refactor_preview, pattern, template, instruction, paths or (), language)
        return await run(call)

    @made.tool()
    async def refactor_apply(plan: Annotated[str, Field(description="From refactor_preview.")]) -> dict[str, Any]:
        """Write a previewed refactor: all its files, or none if one has changed meanwhile."""
        return await run(partial(tools.refactor_apply, plan))

    @made.tool()
    async def syntax_errors(path: PathText, lines: Lines, text: str, version: Version = "") -> dict[str, Any]:
        """Say which syntax errors a text would add in place of these lines."""
        return await run(partial(tools.syntax_errors, path, lines, text, version=version))

    # The library drops arguments that a tool does not have, also a misspelt one that would keep a file as it is.
    for tool in made._tool_manager.list_tools():
        tool.fn_metadata.arg_model.model_config["extra"] = "forbid"
        tool.fn_metadata.arg_model.model_rebuild(force=True)
        tool.parameters["additionalProperties"] = False
    return made


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


class Bearer:
    """ASGI middleware that refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that has the token."""
        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(sent, self._expected):
                await PlainTextResponse("the token is missing or wrong\n", 401)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def http_app(made: MCPServer[Any], token: str) -> Starlette:
    """The server over streamable HTTP at ``/mcp``, for clients of this machine that have the token."""
    app = made.streamable_http_app()
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.user_middleware.insert(0, Middleware(Bearer, token=token))
    return app
