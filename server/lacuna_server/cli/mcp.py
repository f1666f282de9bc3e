"""``lacuna mcp``: tools for agents over the Model Context Protocol."""

import asyncio
import secrets
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.commands import output
from lacuna_model.core.errors import RequestError
from lacuna_server.cli import engines, options
from lacuna_server.wire.config import token_in

INSTALL = "pip install 'lacuna-code[mcp]'"


def mcp(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER...",
            help="Work only inside these folders; by default, in the current one.",
            show_default=False,
            is_eager=True,
            callback=options.configured(lambda folders: folders[0] if folders else Path()),
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve streamable HTTP at http://127.0.0.1:PORT/mcp; by default, stdin and stdout.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="With --http: clients send the token in this file; by default a new one, shown on stderr."),
    ] = None,
    model: options.ServedModelOption = None,
    service: options.ServiceOption = None,
    no_workspace: options.NoWorkspaceOption = False,
) -> None:
    """Offer agents tools that fill gaps, edit by instructions and refactor, with the Model Context Protocol.

    The tools read and write only inside the folders, and write only when a call says so.
    """
    if token_file is not None and port is None:
        raise RequestError("--token-file needs --http; on stdin and stdout there is no token")
    # Imported here, because the library takes a second to load.
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import ExitStack
    from functools import cache

    from lacuna_server.agents.folders import Folders

    try:
        from lacuna_server.agents.serving import http_app, serve_stdio, server
        from lacuna_server.agents.tools import Tools
    except ModuleNotFoundError:
        raise RequestError(f"tools for agents need the package mcp: {INSTALL}") from None
    allowed = Folders(folders or [Path()])
    opened = ExitStack()
    with ThreadPoolExecutor(1) as worker, ExitStack() as stack:
        # The engine is opened and closed in the worker's thread, which is the only one that uses it.
        stack.callback(lambda: worker.submit(opened.close).result())
        engine = cache(lambda: opened.enter_context(engines.opened(model, service))[0])
        tools = Tools(allowed, lambda request: engine().fill(request), workspace=not no_workspace)
        made = server(tools, worker)
        if port is None:
            asyncio.run(serve_stdio(made))
            return
        token = token_in(token_file) if token_file is not None else secrets.token_urlsafe(24)
        shown = "the token of --token-file" if token_file is not None else f"Bearer {token}"
        output.say(f"http://127.0.0.1:{port}/mcp (Authorization: {shown}); Ctrl-C stops")
        import uvicorn

        uvicorn.run(http_app(made, token), host="127.0.0.1", port=port, log_level="warning")
