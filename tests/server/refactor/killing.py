"""Replaces files and recovers them in child processes, and kills each child at another step on disk.

A step is an event of the interpreter's audit hook that can change a file system. The n-th child is killed at its n-th
step. For every child, this program prints the state of the files as a line of JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lacuna_server.refactor.journal import recover, replace_all, state_folder

STEPS = frozenset({"open", "os.rename", "os.remove", "os.chmod", "os.chown", "os.mkdir", "os.truncate"})
OLD, NEW = "old {}\r\n" * 1000, "new {}\n" * 2000


def prepare(folder: Path, count: int) -> list[tuple[Path, bytes, bytes]]:
    contents = []
    for number in range(count):
        path = folder / f"part{number % 2}" / f"{number}.py"
        path.parent.mkdir(exist_ok=True)
        old, new = (text.format(*[number] * text.count("{}")).encode() for text in (OLD, NEW))
        path.write_bytes(old)
        path.chmod(0o640)
        contents.append((path, old, new))
    return contents


def run_killed_at(last: int, action: Callable[[], object]) -> bool:
    """Run an action in a child that is killed at step ``last``. Returns whether the child completed the action."""
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(event: str, arguments: object) -> None:
            nonlocal seen
            if event in STEPS:
                seen += 1
                if seen == last:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        action()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def state(contents: list[tuple[Path, bytes, bytes]]) -> list[str]:
    def one(path: Path, old: bytes, new: bytes) -> str:
        data = path.read_bytes()
        return "old" if data == old else "new" if data == new else "broken"

    return [one(*content) for content in contents]


def report(folder: Path, contents: list[tuple[Path, bytes, bytes]], **about: object) -> None:
    killed, said = state(contents), recover()
    left = [path.name for path in (*folder.rglob("*"), *state_folder().glob("*")) if path.name.startswith(".")]
    modes = sorted({oct(path.stat().st_mode & 0o777) for path, _, _ in contents})
    about |= {"killed": killed, "after": state(contents), "said": said, "left": left, "modes": modes}
    print(json.dumps(about), flush=True)


def main(folder: Path, count: int) -> None:
    ended, last, torn = False, 0, 0
    while not ended:
        last += 1
        contents = prepare(folder, count)
        ended = run_killed_at(last, partial(replace_all, contents))
        torn = torn or (last if len(set(state(contents))) == 2 else 0)
        report(folder, contents, action="replace", ended=ended)
    ended, last = False, 0
    while not ended:
        last += 1
        contents = prepare(folder, count)
        run_killed_at(torn + 2, partial(replace_all, contents))
        ended = run_killed_at(last, recover)
        report(folder, contents, action="recover", ended=ended)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
