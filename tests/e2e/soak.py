"""Uses Lacuna at random for minutes, and says what went wrong: ``python -m tests.e2e.soak --minutes 30``.

Two language servers type, open and close files, ask for suggestions, edits, next edits and refactors over one service
with the real 0.5B; an HTTP client asks beside them, and silent connections stand. In its first six minutes and in its
last one it kills the worker every two minutes; between them each process has time to show the level of its memory
(:mod:`.levels`). At the end it prints the requests without an answer, what the logs hold beside refusals of one line,
and whether the memory of each process is level. It fails where anything of that is wrong.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.levels import SETTLED_MIN, Levels, own_megabytes

ROOT = Path(__file__).parents[2]
ANSWER_SECONDS = 120.0
SILENT: list[socket.socket] = []  # connections that say nothing, and stay
KILLS = (2, 4, 6)  # minutes
WORDS = ("def ", "return ", "self", "value", " for ", " in ", "if ", "(", ")", ":", " = ", ", ", *"[]{}", "\n    ")


class Client:
    """One ``lacuna-lsp`` over its standard streams, with some open files of a folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str], seed: int) -> None:
        self.folder, self.environment = folder, environment
        self.chance = random.Random(seed)
        self.texts: dict[Path, str] = {}
        self.versions: Counter[Path] = Counter()
        self.asked: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.unanswered: list[str] = []
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last = 0

    async def start(self) -> None:
        """Start the server and initialize it."""
        log = (self.folder.parent / f"lsp-{self.chance.random():.6f}.err").open("wb")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-m", "lacuna_lsp",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, env=self.environment,
        )  # fmt: skip
        self.reading = asyncio.create_task(self._read())
        capabilities = {
            "textDocument": {"inlineCompletion": {}},
            "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
        }
        options = {"capabilities": capabilities, "rootUri": self.folder.as_uri(), "processId": os.getpid()}
        await self.ask("initialize", options)
        self._send({"method": "initialized", "params": {}})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while header := await self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while (await self.process.stdout.readline()).strip():
                pass
            message = json.loads(await self.process.stdout.readexactly(length))
            if "method" in message and "id" in message:
                result = {"applied": True} if message["method"] == "workspace/applyEdit" else None
                self._send({"id": message["id"], "result": result})
            elif "id" in message and (waiting := self._waiting.pop(message["id"], None)) and not waiting.done():
                waiting.set_result(message)

    async def ask(self, method: str, params: object, name: str = "") -> Any:
        """The answer to a request; counts refusals, and those that never come."""
        self._last += 1
        number, name = self._last, name or method
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        self.asked[name] += 1
        try:
            answer = await asyncio.wait_for(asyncio.shield(self._waiting[number]), ANSWER_SECONDS)
        except TimeoutError:
            self.unanswered.append(name)
            return None
        if "error" in answer:
            self.failed[f"{name}: {answer['error']['message'][:80]}"] += 1
        return answer.get("result")

    async def act(self) -> None:
        """Do one thing at random."""
        chance = self.chance
        files = sorted(path for path in self.folder.rglob("*") if path.suffix in (".py", ".go", ".ts"))
        path = chance.choice(files)
        uri = {"uri": path.as_uri()}
        if path not in self.texts:
            if len(self.texts) >= 8:
                old = chance.choice(sorted(self.texts))
                del self.texts[old]
                self._send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": old.as_uri()}}})
            self.texts[path] = path.read_text(errors="replace")
            language = {".py": "python", ".go": "go", ".ts": "typescript"}[path.suffix]
            item = uri | {"languageId": language, "version": self.versions[path], "text": self.texts[path]}
            self._send({"method": "textDocument/didOpen", "params": {"textDocument": item}})
        lines = self.texts[path].split("\n")
        row = chance.randrange(len(lines))
        at = {"line": row, "character": chance.randrange(len(lines[row]) + 1)}
        kind = chance.random()
        if kind < 0.7:
            await self._type(path, at, uri)
        elif kind < 0.8:
            place = {
                "start": {"line": row, "character": 0},
                "end": {"line": min(row + 3, len(lines) - 1), "character": 0},
            }
            await self._command("lacuna.edit", {"textDocument": uri, "range": place, "instruction": "add a comment"})
        elif kind < 0.87:
            await self._command(
                "lacuna.refactor", {"pattern": "print($A)", "template": "show($A)", "language": "python"}
            )
        elif kind < 0.9:
            await self.ask("textDocument/copilotInlineEdit", {"textDocument": uri, "position": at})
        elif kind < 0.95:
            await self.ask(
                "textDocument/codeAction",
                {"textDocument": uri, "range": {"start": at, "end": at}, "context": {"diagnostics": []}},
            )
        else:
            await self._command("lacuna.status", None)

    async def _command(self, name: str, argument: object) -> None:
        arguments = [] if argument is None else [argument]
        await self.ask("workspace/executeCommand", {"command": name, "arguments": arguments}, name)

    async def _type(self, path: Path, at: dict[str, int], uri: dict[str, str]) -> None:
        for word in self.chance.choices(WORDS, k=self.chance.randrange(1, 6)):
            lines = self.texts[path].split("\n")
            line = lines[at["line"]]
            lines[at["line"]] = line[: at["character"]] + word + line[at["character"] :]
            self.texts[path] = "\n".join(lines)
            self.versions[path] += 1
            change = {"range": {"start": at, "end": at}, "text": word}
            document = uri | {"version": self.versions[path]}
            self._send(
                {"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [change]}}
            )
            at = {"line": at["line"], "character": at["character"] + len(word)} if "\n" not in word else {
                "line": at["line"] + 1, "character": 4
            }  # fmt: skip
            asked = {"textDocument": uri, "position": at, "context": {"triggerKind": 1 + (self.chance.random() < 0.8)}}
            request = asyncio.create_task(self.ask("textDocument/inlineCompletion", asked))
            await asyncio.sleep(self.chance.choice((0.05, 0.2, 1.0)))
            if self.chance.random() < 0.5:
                await request


def over_http(address: str, chance: random.Random) -> str:
    """Ask once over HTTP, or leave a connection that says nothing; returns the status."""
    if chance.random() < 0.3:
        host, _, port = address.removeprefix("http://").partition(":")
        try:
            SILENT.append(socket.create_connection((host, int(port)), timeout=5))
        except OSError as error:
            return f"silent, refused: {type(error).__name__}"
        return "silent"
    what, path, body = chance.choice(
        [
            ("health", "/health", None),
            ("infill", "/infill", {"input_prefix": "def f(x):\n    ", "input_suffix": "\n", "n_predict": 8}),
            ("completion", "/v1/completions", {"prompt": "x = ", "suffix": "\n", "max_tokens": 8}),
            ("chat", "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}),
            ("nowhere", "/nowhere", {"a": 1}),
            ("brackets", "/v1/completions", {"prompt": "[" * 20_000, "max_tokens": 4}),
        ]
    )
    request = urllib.request.Request(
        address + path, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"}
    )
    asked = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            said = str(answer.status)
    except urllib.error.HTTPError as error:
        said = str(error.code)
    except OSError as error:
        said = f"no answer: {type(error).__name__}"
    if (seconds := time.monotonic() - asked) > 20:
        print(f"{what} took {seconds:.0f} s: {said}", flush=True)
    return f"{what} {said}"


def processes(environment: Mapping[str, str]) -> dict[int, str]:
    """Our processes, and which module of ours each runs."""
    found, ours = {}, f"XDG_RUNTIME_DIR={environment['XDG_RUNTIME_DIR']}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            name = next((word for word in words if word.startswith("lacuna_")), "")
            if name and ours in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = name
    return found


async def soak(minutes: float, seed: int) -> bool:
    """Run it, and print what was found; returns whether nothing is wrong."""
    home = Path(tempfile.mkdtemp(prefix="soak-"))
    (home / "run").mkdir(mode=0o700)
    folder = home / "project"
    folder.mkdir()
    for source in [*(ROOT / "lsp/lacuna_lsp").rglob("*.py"), *(ROOT / "editor-clients/vscode/src").glob("*.ts")]:
        (folder / f"{source.parent.name}_{source.name}").write_text(source.read_text())
    environment = os.environ | {
        "XDG_RUNTIME_DIR": str(home / "run"), "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"), "LACUNA_MODEL": "qwen2.5-coder-0.5b",
    }  # fmt: skip
    clients = [Client(folder, environment, seed + number) for number in range(2)]
    for client in clients:
        await client.start()
    began, chance, answers, levels = time.monotonic(), random.Random(seed), Counter[str](), Levels()

    def left() -> bool:
        return time.monotonic() - began < minutes * 60

    async def at_keys(client: Client) -> None:
        while left():
            await client.act()

    async def beside() -> None:
        service = home / "run/lacuna/service.json"
        while left():
            await asyncio.sleep(chance.uniform(0.5, 4))
            if service.exists():
                address = json.loads(service.read_text())["url"]
                answers[await asyncio.to_thread(over_http, address, chance)] += 1

    async def watching() -> None:
        kills = [*KILLS, minutes - 1]
        while left():
            passed = (time.monotonic() - began) / 60
            sizes = own_megabytes(processes(environment))
            levels.note(passed, sizes)
            print(
                f"{passed:5.1f} min ", *(f"{name} {pid}: {size:.0f}" for (name, pid), size in sizes.items()), flush=True
            )
            if kills and passed > kills[0]:
                del kills[0]
                for pid, name in processes(environment).items():
                    if name == "lacuna_server.worker":
                        os.kill(pid, signal.SIGKILL)
                        print("killed a worker", flush=True)
            await asyncio.sleep(30)

    await asyncio.gather(*map(at_keys, clients), beside(), watching())
    for client in clients:
        client.process.terminate()
        print("asked", dict(client.asked), "\nrefused", dict(client.failed), "\nunanswered", client.unanswered)
    print("over HTTP", dict(answers))
    for pid in processes(environment):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    wrong = [f"no answer to {name}" for client in clients for name in client.unanswered]
    wrong += [f"over HTTP {said}" for said in answers if "no answer" in said]
    wrong += faults([*home.glob("*.err"), *(home / "state").rglob("*.log")])
    for minute in range(round(SETTLED_MIN), int(minutes) + 1, 5):
        print(f"minute {minute}:", *(f"{name}: {size:.0f} MB" for name, size in levels.at(minute).items()))
    for name, level in levels.judged().items():
        print(name, level or "lived too short to be judged")
        if level is not None and not level.is_level:
            wrong.append(f"{name} {level}")
    print("kept in", home)
    print("\n".join(wrong) or "nothing went wrong")
    return not wrong


def faults(logs: Sequence[Path]) -> list[str]:
    """What logs hold beside lines: tracebacks."""
    found = []
    for log in logs:
        lines = log.read_text(errors="replace").splitlines()
        count = sum("Traceback" in line for line in lines)
        print(log.name, len(lines), "lines;", count, "tracebacks")
        found += [f"{count} tracebacks in {log}"] * (count > 0)
    return found


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="30 or more, to judge the memory of each process")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not asyncio.run(soak(options.minutes, options.seed)):
        sys.exit(1)


if __name__ == "__main__":
    main()
