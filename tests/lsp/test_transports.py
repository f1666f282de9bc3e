"""The transports stdio, Unix socket, websocket. Every client has its own server, and no workspace shadows a module."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from .editor import connected, launched
from .service import Daemon


async def test_a_server_on_stdio_ends_as_lsp_requires(daemon: Daemon) -> None:
    async with launched(daemon.environment) as editor:
        await editor.begin()
        assert await editor.suggest() == ["filled"]
        server = editor.client._server
    assert server is not None
    assert server.returncode == 0


def test_an_engine_address_without_a_scheme_is_refused_with_an_example() -> None:
    command = [sys.executable, "-m", "lacuna_lsp", "--engine", "localhost:8377"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "'localhost:8377' is not a URL such as http://127.0.0.1:8377" in ended.stderr


async def test_a_unix_socket_is_for_this_user_alone_and_goes_with_the_server(daemon: Daemon) -> None:
    socket = daemon.folder / "own.sock"
    command = [sys.executable, "-I", "-m", "lacuna_lsp", "--unix", str(socket)]
    with subprocess.Popen(command, env=daemon.environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        async with connected(socket) as editor:
            await editor.initialize()
        process.send_signal(signal.SIGINT)
    assert not socket.exists()


async def test_clients_over_a_socket_do_not_see_each_other(daemon: Daemon, language_server: Path) -> None:
    async with connected(language_server) as one:
        async with connected(language_server) as other:
            await one.initialize({"debounce": False})
            await other.initialize({"enabled": False}, encoding="utf-8")
            one.open("😀 = ¦\n")
            other.open("ö = ¦\n")
            assert await one.suggest() == ["filled"]
            assert await other.suggest() == []
        # One client has disconnected properly. The other one continues.
        one.type("x + ")
        assert await one.suggest() == ["filled"]


@contextmanager
def listening(daemon: Daemon, **variables: str) -> Iterator[str]:
    """The address that a ``lacuna-lsp`` for websockets prints."""
    command = [sys.executable, "-I", "-m", "lacuna_lsp", "--ws", "0", "--origin", "https://editor.example"]
    environment = dict(daemon.environment) | variables
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield process.stderr.readline().removeprefix("listening on ").strip()
        process.terminate()


async def refuses(url: str, **how: Any) -> int:
    """Whether a connection is refused, and with which status."""
    with pytest.raises(InvalidStatus) as refused:
        await connect(url, **how)
    return refused.value.response.status_code


async def test_a_websocket_has_a_token_that_is_printed_and_a_web_page_needs_an_allowed_origin(daemon: Daemon) -> None:
    with listening(daemon) as url:
        parts = urlsplit(url)
        assert len(parse_qs(parts.query)["token"][0]) >= 32
        assert await refuses(f"ws://{parts.netloc}/") == 401
        await (await connect(url)).close()
        assert await refuses(url, origin="https://evil.example") == 403
        await (await connect(url, origin=Origin("https://editor.example"))).close()


async def test_a_websocket_client_needs_the_token_of_the_server(daemon: Daemon) -> None:
    with listening(daemon, LACUNA_LSP_TOKEN="s3cret") as url:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert await refuses(url, additional_headers=headers) == 401
        right = {"Authorization": "Bearer s3cret"}
        for connection in (connect(url, additional_headers=right), connect(f"{url}/?token=s3cret")):
            await (await connection).close()


def test_torch_is_never_loaded() -> None:
    code = (
        "import sys, pkgutil, lacuna_lsp\n"
        "for module in pkgutil.walk_packages(lacuna_lsp.__path__, 'lacuna_lsp.'):\n"
        "    if not module.name.endswith('__main__'): __import__(module.name)\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] == 'torch'))\n"
    )
    ended = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


async def test_a_workspace_cannot_shadow_an_imported_module(daemon: Daemon, tmp_path: Path) -> None:
    for name in ("json", "asyncio", "lacuna_lsp", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    command = [sys.executable, "-I", "-m", "lacuna_lsp", "--version"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
