"""Uses Lacuna at random for minutes, and says what went wrong: ``python -m tests.e2e.soak --minutes 30``.

Two editors type, ask for suggestions, edits, next edits and refactors over one service with the real 0.5B; an HTTP
client asks beside them, and silent connections stand. In its first six minutes it kills the worker every two minutes;
then each process has time to show the level of its memory. At the end it prints what was asked, refused and not
answered, the tracebacks in the logs, and whether the memory of each process is level; it fails where one is not.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from tests.editor_clients.vscode import processes
from tests.lsp.editor import Editor, launched

ROOT = Path(__file__).parents[2]
ANSWER_SECONDS = 120.0
KILLS = (2, 4, 6)  # minutes
WORDS = ("def ", "return ", "self", "value", " for ", " in ", "if ", "(", ")", ":", " = ", ", ", *"[]{}", "\n    ")
LANGUAGES = {".py": "python", ".ts": "typescript"}
ASKED = {
    "/health": None,
    "/infill": {"input_prefix": "def f(x):\n    ", "input_suffix": "\n", "n_predict": 8},
    "/v1/completions": {"prompt": "x = ", "suffix": "\n", "max_tokens": 8},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8},
    "/nowhere": {"a": 1},
    "/completion": {"prompt": "[" * 20_000, "n_predict": 4},
}
# A process fills its caches in the first minutes of its life, and is judged by so many minutes after them at least.
SETTLED_MIN, LEAST_MIN = 10.0, 6.0
# Between the middles of the first and the last third of these memory may grow by so many MB, or by this part of it.
GROWTH_MB, GROWTH = 4.0, 0.04


class Soak:
    """What was asked and answered, and the memory (MB) of each process by the minute, by its name and id."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.said = Counter[str]()
        self.silent: list[socket.socket] = []  # connections that say nothing, and stay
        self.memory: dict[str, list[tuple[float, float]]] = {}

    async def ask(self, name: str, answer: Awaitable[object]) -> None:
        """Count what becomes of a request."""
        try:
            await asyncio.wait_for(answer, ANSWER_SECONDS)
            self.said[name] += 1
        except JsonRpcException as error:
            self.said[f"{name}, refused: {error.message[:80]}"] += 1
        except TimeoutError:
            self.said[f"NO ANSWER to {name}"] += 1

    async def visit(self, editor: Editor, file: Path) -> None:
        """Open a file, do some things at random places of it, and close it."""
        text, chance = file.read_text(), self.chance
        at = chance.randrange(len(text) + 1)
        editor.open(f"{text[:at]}¦{text[at:]}", language=LANGUAGES[file.suffix], uri=file.as_uri())
        document, here = {"uri": editor.uri}, {"line": editor.position.line, "character": 0}
        span = {"start": here, "end": {"line": here["line"], "character": 1}}
        for _ in range(chance.randrange(1, 6)):
            kind = chance.random()
            if kind < 0.7:
                await self.type(editor)
            elif kind < 0.8:
                wanted = {"textDocument": document, "range": span, "instruction": "add a comment"}
                await self.ask("edit", editor.command("lacuna.edit", wanted))
            elif kind < 0.9:
                wanted = {"pattern": "print($A)", "template": "show($A)", "language": "python"}
                await self.ask("refactor", editor.command("lacuna.refactor", wanted))
            else:
                next_edit = {"textDocument": document, "position": here}
                send = editor.client.protocol.send_request_async
                await self.ask("next edit", send("textDocument/copilotInlineEdit", next_edit))
        closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(editor.uri))
        editor.client.text_document_did_close(closed)

    async def type(self, editor: Editor) -> None:
        """Type some words, and ask for a suggestion behind each."""
        for word in self.chance.choices(WORDS, k=self.chance.randrange(1, 6)):
            editor.type(word)
            asked = asyncio.create_task(self.ask("suggest", editor.suggest(invoked=self.chance.random() < 0.2)))
            await asyncio.sleep(self.chance.choice((0.05, 0.2, 1.0)))
            if self.chance.random() < 0.5:
                await asked

    def over_http(self, address: str) -> None:
        """Ask once over HTTP, or leave a connection that says nothing."""
        try:
            if self.chance.random() < 0.3:
                host, _, port = address.removeprefix("http://").partition(":")
                self.silent.append(socket.create_connection((host, int(port)), timeout=5))
                return
            path = self.chance.choice(list(ASKED))
            body = json.dumps(ASKED[path]).encode() if ASKED[path] else None
            request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                self.said[f"{path} {answer.status}"] += 1
        except urllib.error.HTTPError as error:
            self.said[f"{path} {error.code}"] += 1
        except OSError as error:
            self.said[f"NO ANSWER over HTTP: {type(error).__name__}"] += 1

    def note(self, minute: float, ours: Mapping[int, str]) -> None:
        """Note what each process has for itself: pages of files, such as the weights, are the system's to take back."""
        for pid, name in ours.items():
            with suppress(OSError, IndexError):
                status = Path(f"/proc/{pid}/status").read_text()
                size = int(status.split("RssAnon:")[1].split()[0]) * 1024 / 1e6
                self.memory.setdefault(f"{name} {pid}", []).append((minute, size))
                print(f"{minute:5.1f} min {name} {pid}: {size:.0f} MB", flush=True)

    def grown(self) -> list[str]:
        """The processes whose memory is not level."""
        found = []
        for name, noted in self.memory.items():
            settled = [one for one in noted if one[0] >= noted[0][0] + SETTLED_MIN]
            if settled and settled[-1][0] - settled[0][0] >= LEAST_MIN:
                third = max(len(settled) // 3, 1)
                first, last = (
                    statistics.median(size for _, size in part) for part in (settled[:third], settled[-third:])
                )
                if last - first > max(GROWTH_MB, GROWTH * first):
                    found.append(f"{name} GREW from {first:.0f} to {last:.0f} MB")
        return found


def running(home: Path) -> dict[int, str]:
    """Our processes, and which module of ours each runs."""
    mark = f"XDG_RUNTIME_DIR={home / 'run'}\0".encode()
    found = {}
    for pid, command, variables in processes():
        name = next((word for word in command.decode(errors="replace").split("\0") if word.startswith("lacuna_")), "")
        if name and mark in variables:
            found[int(pid)] = name
    return found


async def soak(minutes: float, seed: int) -> list[str]:
    """Run it; returns what went wrong."""
    home, it, began = Path(tempfile.mkdtemp(prefix="soak-")), Soak(seed), time.monotonic()
    (home / "run").mkdir(mode=0o700)
    (home / "project").mkdir()
    for source in [*(ROOT / "lsp/lacuna_lsp").rglob("*.py"), *(ROOT / "editor-clients/vscode/src").glob("*.ts")]:
        (home / "project" / f"{source.parent.name}_{source.name}").write_text(source.read_text())
    environment = os.environ | {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "CONFIG")}
    environment |= {"XDG_RUNTIME_DIR": str(home / "run"), "LACUNA_MODEL": "qwen2.5-coder-0.5b"}
    files = sorted((home / "project").iterdir())

    def passed() -> float:
        return (time.monotonic() - began) / 60

    async def at_keys() -> None:
        async with launched(environment) as editor:
            await editor.initialize(folder=home / "project", ready=False)
            while passed() < minutes:
                await it.visit(editor, it.chance.choice(files))

    async def beside() -> None:
        service = home / "run/lacuna/service.json"
        while passed() < minutes:
            await asyncio.sleep(it.chance.uniform(0.5, 4))
            if service.exists():
                await asyncio.to_thread(it.over_http, json.loads(service.read_text())["url"])

    async def watching() -> None:
        kills = list(KILLS)
        while passed() < minutes:
            ours = running(home)
            it.note(passed(), ours)
            if kills and passed() > kills[0]:
                del kills[0]
                for pid in (pid for pid, name in ours.items() if name == "lacuna_server.worker"):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(30)

    await asyncio.gather(at_keys(), at_keys(), beside(), watching())
    for pid in running(home):
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    print(*(f"{count:6d} {what}" for what, count in sorted(it.said.items())), f"kept in {home}", sep="\n")
    logs = {log: log.read_text(errors="replace").count("Traceback") for log in (home / "state").rglob("*.log")}
    wrong = [f"{count} tracebacks in {log}" for log, count in logs.items() if count]
    return [what for what in it.said if what.startswith("NO ANSWER")] + wrong + it.grown()


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="30 or more, to judge the memory of each process")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if wrong := asyncio.run(soak(options.minutes, options.seed)):
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
