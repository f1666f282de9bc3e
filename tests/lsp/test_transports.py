"""The transports stdio, TCP and websocket. Every client has its own server, and no workspace shadows a module."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_lsp import make_test_lsp_client
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from .editor import Editor, connected, started
from .service import Daemon

AT_ONCE = {"debounce": False}


async def test_a_server_on_stdio_ends_as_lsp_requires(daemon: Daemon) -> None:
    async with started(daemon) as editor:
        await editor.initialize(AT_ONCE)
        editor.open("value = ¦\n")
        assert await editor.suggest() == ["filled"]
        server = editor.client._server
    assert server is not None
    assert server.returncode == 0


def test_an_engine_address_without_a_scheme_is_refused_with_an_example() -> None:
    command = [sys.executable, "-m", "lacuna_lsp", "--engine", "localhost:8377"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "'localhost:8377' is not a URL such as http://127.0.0.1:8377" in ended.stderr


@pytest.mark.parametrize(
    ("transport", "said"),
    [("--tcp", "can listen on loopback only"), ("--ws", "needs a token for its clients: set $LACUNA_LSP_TOKEN")],
)
def test_another_address_than_loopback_is_refused_without_a_token(transport: str, said: str) -> None:
    command = [sys.executable, "-m", "lacuna_lsp", transport, "0", "--host", "0.0.0.0"]
    environment = {name: value for name, value in os.environ.items() if name != "LACUNA_LSP_TOKEN"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert ended.returncode == 2
    assert said in ended.stderr


async def test_clients_over_tcp_do_not_see_each_other(daemon: Daemon, language_server: int) -> None:
    async with connected(language_server) as one:
        async with connected(language_server) as other:
            await one.initialize(AT_ONCE)
            await other.initialize(AT_ONCE | {"enabled": False}, encoding="utf-8")
            one.open("😀 = ¦\n")
            other.open("ö = ¦\n")
            assert await one.suggest() == ["filled"]
            assert await other.suggest() == []
        # One client has disconnected properly. The other one continues.
        one.type("x + ")
        assert await one.suggest() == ["filled"]


@pytest.fixture
def websocket_port(daemon: Daemon) -> object:
    command = [sys.executable, "-I", "-m", "lacuna_lsp", "--ws", "0", "--origin", "https://editor.example"]
    process = subprocess.Popen(command, env=daemon.environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    yield int(process.stderr.readline().rpartition(":")[2])
    process.terminate()
    process.wait()
    process.stderr.close()


async def test_two_clients_over_websockets_are_independent(daemon: Daemon, websocket_port: int) -> None:
    one, other = make_test_lsp_client(), make_test_lsp_client()
    for client in (one, other):
        await client.start_ws("127.0.0.1", websocket_port)
        editor = Editor(client)
        await editor.initialize(AT_ONCE)
        editor.open("value = ¦\n" * (150_000 if client is other else 1))  # over a megabyte in one message
        assert await editor.suggest() == ["filled"]
    await one.shutdown_async(None)
    one.exit(None)
    await one.stop()
    assert await editor.suggest(invoked=True) == ["filled"]
    await other.shutdown_async(None)
    other.exit(None)
    await other.stop()


async def test_a_web_page_may_not_connect_unless_its_origin_is_allowed(websocket_port: int) -> None:
    url = f"ws://127.0.0.1:{websocket_port}"
    with pytest.raises(InvalidStatus):
        await connect(url, origin="https://evil.example")  # type: ignore[arg-type]
    allowed = await connect(url, origin="https://editor.example")  # type: ignore[arg-type]
    await allowed.close()


async def test_an_abrupt_disconnect_does_not_end_the_server(daemon: Daemon, language_server: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", language_server)
    writer.write(b"Content-Length: 5000\r\n\r\n{")
    writer.close()
    await writer.wait_closed()
    async with connected(language_server) as editor:
        await editor.initialize(AT_ONCE)


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


def test_the_command_explains_and_checks_its_options() -> None:
    command = [sys.executable, "-I", "-m", "lacuna_lsp"]
    explained = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(option in explained for option in ("--tcp", "--ws", "--engine", "--origin"))
    refused = subprocess.run([*command, "--tcp", "1", "--ws", "2"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "not allowed with" in refused.stderr
