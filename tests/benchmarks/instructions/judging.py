"""Judges an edited file by a program: it parses, the patterns of its task hold, and the task's own program runs."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.benchmarks.instructions.tasks import Task, stubs
from tests.benchmarks.tasks.sandbox import Sandbox

from lacuna_model.core.params import Region
from lacuna_model.syntax import language_for, parses

SECONDS = 20.0
TOOLS = {"javascript": "node", "c": "cc"}


def missing_tools(tasks: list[Task]) -> list[str]:
    """The programs that the tasks' own programs need and that this machine does not have."""
    needed = {TOOLS[task.language] for task in tasks if task.run and task.language in TOOLS}
    return sorted(tool for tool in needed if shutil.which(tool) is None)


def judged(task: Task, text: str, region: str, sandbox: Sandbox) -> str:
    """Why the edited file ``text`` is wrong, "" where it is right; ``region`` are its new lines."""
    language = language_for(task.file)  # a file with macros may not parse from the start
    if language and parses(task.text.encode(), language) and not parses(text.encode(), language):
        return "it does not parse"
    region = region.replace("\r\n", "\n")
    for pattern in task.has:
        if not re.search(pattern, region, re.MULTILINE):
            return f"it lacks {pattern}"
    for pattern in task.lacks:
        if re.search(pattern, region, re.MULTILINE):
            return f"it has {pattern}"
    return _ran(task, text, sandbox) if task.run else ""


def _ran(task: Task, text: str, sandbox: Sandbox) -> str:
    """Why the task's program fails on the edited file."""
    for line, stub in stubs(task.file).items():
        text = text.replace(line, stub)
    program = f"{text}\n{task.run}"
    if task.language == "python":
        outcome = sandbox.run(program)
        return "" if outcome.verdict == "passed" else f"its program failed: {outcome.verdict} {outcome.detail}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / ("program.c" if task.language == "c" else "program.js")
        source.write_text(program, encoding="utf-8")
        binary = Path(folder) / "program"
        commands = [["cc", "-std=gnu11", "-w", "-o", str(binary), str(source)], [str(binary)]]
        for command in commands if task.language == "c" else [["node", str(source)]]:
            try:
                done = subprocess.run(command, cwd=folder, capture_output=True, timeout=SECONDS, check=False)
            except subprocess.TimeoutExpired:
                return f"its program did not end within {SECONDS:g} s"
            if done.returncode:
                return f"its program failed: {done.stderr.decode(errors='replace').strip()[-200:]}"
    return ""


def region_of(task: Task) -> Region:
    """The region of a task's lines."""
    start, end = task.span
    return Region(start, end, max_tokens=512)
