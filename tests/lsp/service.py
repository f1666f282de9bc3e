"""Runs the service with a scripted engine, so that the language server finds it."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lacuna_server.client.lifecycle import Running

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class Daemon:
    """The service with a scripted engine. In its own runtime folder, ``lacuna-lsp`` finds no other service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = os.environ | {
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_STATE_HOME": str(folder / "state"),
            "LSP_SCRIPT": str(folder),
            "PYTHONPATH": os.pathsep.join(
                [str(HERE), *(str(ROOT / name) for name in ("server", "lsp", "model", "kernels"))]
            ),
        }
        (folder / "run").mkdir(mode=0o700)
        self.plan()

    def plan(self, **script: object) -> None:
        """Replace the engine's script. The replacement is atomic, because the engine may be reading the old script."""
        new = self.folder / "script.json.new"
        new.write_text(json.dumps(script))
        new.replace(self.folder / "script.json")

    @property
    def log(self) -> list[dict[str, Any]]:
        """The events that the engine has logged."""
        file = self.folder / "log.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def events(self) -> list[str]:
        """The names of these events."""
        return [one["event"] for one in self.log]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The fill requests that the engine has received, but for those for next edits."""
        return [one for one in self._started if one["task"]["type"] != "follow"]

    @property
    def rewrites(self) -> list[dict[str, Any]]:
        """The requests for next edits that the engine has received."""
        return [request for request in self._started if request["task"]["type"] == "follow"]

    @property
    def _started(self) -> list[dict[str, Any]]:
        return [event["request"] for event in self.log if event["event"] == "start"]

    def start(self, port: int = 0, token: str = "", python: Path = Path(sys.executable), **more: str) -> None:
        config = self.folder / "lacuna.toml"
        config.write_text(
            f'engine = "scripted_engine:load"\nport = {port}\ntoken = "{token}"\nshutdown_grace_s = 0.2\n'
            + "".join(f'{name} = "{value}"\n' for name, value in more.items())
        )
        config.chmod(0o600)
        command = [str(python), "-P", "-m", "lacuna_server", "serve", "--config", str(config)]
        with (self.folder / "daemon.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        wait_for(lambda: (self.folder / "run/lacuna/service.json").exists())

    def restart(self, **script: object) -> None:
        """Begin anew, with an engine that follows this script from its loading on."""
        self.kill()
        self.plan(**script)
        self.start()

    @property
    def running(self) -> Running:
        found = json.loads((self.folder / "run/lacuna/service.json").read_text())
        return Running(**found)

    @property
    def sessions(self) -> int:
        """The number of connected clients."""
        with urllib.request.urlopen(f"{self.running.url}/metrics") as answer:
            (count,) = re.findall(r"^lacuna_sessions (\d+)", answer.read().decode(), re.MULTILINE)
        return int(count)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            (self.folder / "run/lacuna/service.json").unlink(missing_ok=True)
            self.process = None


def wait_for(what: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.02)
