"""A real MCP client uses the tools, on stdin and stdout and over streamable HTTP."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from lacuna_model.hub import models

ROOT = Path(__file__).parents[3]
SERVE = Path(__file__).with_name("serve_scripted.py")
NAMES = {"fill_gaps", "edit", "refactor_preview", "refactor_apply", "syntax_errors"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "project"
    inside.mkdir()
    (inside / "code.py").write_text("a = 1\nb = <<fill>>\n")
    return inside


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    path = os.pathsep.join(str(ROOT / name) for name in ("server", "lsp", "model", "kernels"))
    return {**os.environ, "PYTHONPATH": path, "LACUNA_STATE": str(tmp_path / "state")}


async def use(client: Client, folder: Path, message: str) -> None:
    """What an agent does: look at the tools, edit, be refused, and apply. The engine answers with a message."""
    assert {tool.name for tool in (await client.list_tools()).tools} == NAMES
    arguments: dict[str, Any] = {"path": "code.py", "lines": "1:1", "instruction": "count"}
    shown = await client.call_tool("edit", arguments)
    assert not shown.is_error
    assert shown.structured_content is not None
    assert "+scripted = 1" in shown.structured_content["diff"]
    assert shown.structured_content["message"] == message
    assert (folder / "code.py").read_text() == "a = 1\nb = <<fill>>\n"
    outside = await client.call_tool("edit", {**arguments, "path": "../other.py"})
    assert outside.is_error
    assert "outside the folders of this server" in str(outside.content)
    written = await client.call_tool("edit", {**arguments, "apply": True})
    assert not written.is_error
    assert (folder / "code.py").read_text() == "scripted = 1\nb = <<fill>>\n"
    assert written.structured_content is not None
    stale = await client.call_tool("edit", {**arguments, "version": shown.structured_content["version"]})
    assert stale.is_error
    assert f"it is {written.structured_content['version']}" in str(stale.content)
    unknown = await client.call_tool("edit", {**arguments, "apply": True, "dry_run": True, "old_str": "b"})
    assert unknown.is_error
    assert "dry_run" in str(unknown.content)
    assert (folder / "code.py").read_text() == "scripted = 1\nb = <<fill>>\n"
    refused = await client.call_tool("syntax_errors", {"path": "code.py", "lines": "1:1", "text": "a = (\n"})
    assert refused.structured_content is not None
    assert refused.structured_content["status"] == "refused"


async def test_on_stdin_and_stdout_with_the_settings_of_the_folder(folder: Path, environment: dict[str, str]) -> None:
    (folder / "lacuna.toml").write_text('model = "qwen2.5-coder-1.5b"\nworkspace = false\n')
    environment.pop(models.MODEL_VARIABLE, None)
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVE), str(folder)], env=environment)
    async with Client(stdio_client(parameters)) as client:
        await use(client, folder, "model qwen2.5-coder-1.5b, workspace ''")


@pytest.fixture
def address(folder: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "token").write_text("word\n")
    (tmp_path / "token").chmod(0o600)
    command = [sys.executable, str(SERVE), str(folder), "--http", str(port), "--token-file", str(tmp_path / "token")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx2.get(f"http://127.0.0.1:{port}/mcp")
                break
            except httpx2.TransportError:
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


async def test_over_streamable_http_with_the_token(folder: Path, address: str) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    for headers in ({}, {"Authorization": "Bearer other"}):
        answer = httpx2.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
        assert answer.status_code == 401
    async with (
        create_mcp_http_client(headers={"Authorization": "Bearer word"}) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        await use(client, folder, f"model {models.DEFAULT_MODEL}, workspace {str(folder)!r}")


def test_a_call_with_half_a_character_is_answered(folder: Path, environment: dict[str, str]) -> None:
    """JavaScript cuts a text between the halves of a character; the standard library writes such a half as it is."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    arguments = {"path": "code.py", "lines": "1:1", "instruction": "count \ud83d"}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "edit", "arguments": arguments}},
    ]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    command = [sys.executable, str(SERVE), str(folder)]
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=none, encoding="utf-8") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["structuredContent"]["status"] == "changed"


def test_without_the_library_one_line_says_how_to_install_it(folder: Path, environment: dict[str, str]) -> None:
    program = "import sys; sys.modules['mcp'] = None\nfrom lacuna_server.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "mcp", str(folder)], env=environment, capture_output=True, text=True
    )
    said = "lacuna: tools for agents need the package mcp: pip install 'lacuna-code[mcp]'\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)
