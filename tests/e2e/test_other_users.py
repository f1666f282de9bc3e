"""Another user of this machine, in a process with another uid, must not read private files through the service."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lacuna_server.client.client import Client
from lacuna_server.wire.protocol import Open

from .test_service import Daemon, daemon, fill

__all__ = ["daemon"]

SECRET = "what the private file says"
OTHER_UID = 54321
# Makes every request as root first. This imports all modules before it loses access to the interpreter's folder.
INTRUDER = """
import json, os, sys, urllib.request
from websockets.sync.client import connect

address, workspace, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])

def conversation(opened):
    infill = {"type": "infill", "id": "1", "uri": "a", "version": 1,
        "regions": [{"start": 0, "end": 0, "max_tokens": 1}]}
    with connect(f"ws://{address}/v1/ws", subprotocols=["lacuna.v1.json"], proxy=None) as connection:
        for message in ({"type": "hello"}, {"type": "open", "uri": "a", "version": 1, "text": "READ"} | opened, infill):
            connection.send(json.dumps(message))
        while True:
            heard = json.loads(connection.recv())
            if heard["type"] == "error":
                return heard["code"]
            if heard["type"] == "result":
                return heard["result"]["fills"][0]

def posted(body):
    request = urllib.request.Request(f"http://{address}/infill", json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())["content"]

def attempt():
    own = {"input_prefix": "READ", "input_suffix": "", "n_predict": 1}
    path = os.path.join(workspace, "private")
    return {
        "websocket": conversation({"workspace": workspace, "path": path}),
        "websocket, own text": conversation({"path": path}),
        "http": posted(own | {"workspace": workspace, "path": path}),
    }

attempt()
os.setgid(uid)
os.setuid(uid)
found = attempt()
for name, path in (("service.json", sys.argv[4]), ("private", os.path.join(workspace, "private"))):
    try:
        found[name] = open(path).read()
    except OSError as error:
        found[name] = type(error).__name__
print(json.dumps(found))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its uid; test_lifecycle.py tests the file modes")
async def test_another_user_gets_nothing_of_a_private_workspace(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:  # the service and its files must refuse the other user, not a parent folder
        if parent.is_relative_to("/tmp/pytest-of-root"):
            parent.chmod(0o755)
    workspace, runtime = tmp_path / "workspace", tmp_path / "run"
    for folder in (workspace, runtime):
        folder.mkdir(mode=0o700)
    (workspace / "private").write_text(SECRET)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    _, address = daemon.serve(stderr=subprocess.DEVNULL)
    places = [address.url.removeprefix("http://"), str(workspace), str(OTHER_UID), str(runtime / "lacuna/service.json")]
    said = subprocess.run([sys.executable, "-c", INTRUDER, *places], capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == {
        "websocket": "unauthorized",
        "websocket, own text": "no workspace",
        "http": "no workspace",
        "service.json": "PermissionError",
        "private": "PermissionError",
    }
    async with await Client.connect(address) as client:
        client.open(Open("a", "READ", 1, workspace=str(workspace)))
        assert (await fill(client, "a")).result.fills == (SECRET,)
