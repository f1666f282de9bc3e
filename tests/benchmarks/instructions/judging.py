"""Judges an edit by a program, and not by the engine's own judge: is it right, and what has it destroyed?

It is right where the file parses, the patterns of the task hold, and the task's own program runs. It does harm where a
name that was defined is gone and the instruction does not say it, where a line that stands beside the part comes again,
where a line changes that the instruction is not about, where a fence appears, where a line ends otherwise than the
part's lines did, or where a byte outside of the part changes.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.benchmarks.instructions.tasks import Task, stubs
from tests.benchmarks.tasks import sandbox

from lacuna_model.syntax import language_for, parses

SECONDS = 20.0
TOOLS = {"javascript": "node", "c": "cc"}
# So many characters make a line telling: it does not come again by chance, as "}" and "return 0;" do.
TELLING = 12
FENCE = re.compile(r"^\s*(```|~~~)", re.MULTILINE)
HEADINGS = re.compile(r"^#+ .*$", re.MULTILINE)
_CODE = (
    r"\b(?:def|class|function|func|fn|fun|trait|type|interface|struct|enum)\s+(?:\([^)]*\)\s*)?(\w+)",
    r"^[ \t]*(?:[\w*<>\[\]]+[ \t]+)+\*?(\w+)\([^;]*\)[ \t]*\{",
    r"^[ \t]*(\w+)\([^;]*\)(?:: \w+)? \{",
)
_KEYS = (r"^[ \t]*[\"']?([\w.-]+)[\"']?[ \t]*[=:]", r"^\[(\w+)\]")
_WORDS = frozenset({"if", "for", "while", "switch", "return", "else", "catch", "new", "function"})


def missing_tools(tasks: list[Task]) -> list[str]:
    """The programs that the tasks' own programs need and that this machine does not have."""
    needed = {TOOLS[task.language] for task in tasks if task.run and task.language in TOOLS}
    return sorted(tool for tool in needed if shutil.which(tool) is None)


def judged(task: Task, text: str, region: str) -> str:
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
    return _ran(task, text) if task.run else ""


def _ran(task: Task, text: str) -> str:
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


def harm(task: Task, region: str) -> str:
    """What the new lines ``region`` have destroyed; "" where nothing."""
    start, end = task.span
    part = task.text.encode()[start:end].decode()
    if len(FENCE.findall(region)) > len(FENCE.findall(part)):
        return "a fence has appeared"
    if task.group == "prose" and len(HEADINGS.findall(region)) > len(HEADINGS.findall(part)):
        return "a heading has appeared"
    ends = {line[len(line.rstrip("\r\n")) :] for line in part.splitlines(keepends=True)}
    if others := {line[len(line.rstrip("\r\n")) :] for line in region.splitlines(keepends=True)} - ends:
        return f"a line ends in {others.pop()!r}"
    return _lost(task, part, region) or _repeated(task, part, region) or _touched(task, region)


def _lost(task: Task, part: str, region: str) -> str:
    said = set(re.findall(r"\w+", task.instruction))
    gone = names(task, part) - names(task, region) - said
    return f"{min(gone)} is no longer defined" if gone else ""


def names(task: Task, text: str) -> set[str]:
    """The names that a text defines: functions and types of code, keys of a configuration, none of prose."""
    patterns = {"prose": (), "configuration": _KEYS}.get(task.group, _CODE)
    return {name for one in patterns for name in re.findall(one, text, re.MULTILINE)} - _WORDS


def _repeated(task: Task, part: str, region: str) -> str:
    start, end = task.span
    data = task.text.encode()
    beside = [*data[:start].decode().splitlines(), *data[end:].decode().splitlines()]
    known, written = part.splitlines(), region.splitlines()
    for line in beside:
        own = task.group in ("prose", "configuration") or not line[:1].isspace()
        if own and len(line.strip()) >= TELLING and written.count(line) > known.count(line):
            return f"a line from beside the part comes again: {line.strip()}"
    outside = names(task, "\n".join(beside)) - names(task, part) if task.group != "configuration" else set()
    again = outside & names(task, region)
    said = set(re.findall(r"\w+", task.instruction))
    return f"{min(again - said)} is defined twice" if again - said else ""


def _touched(task: Task, region: str) -> str:
    """The first line that the instruction is not about, and that is not there as it was."""
    if task.touched is None:
        return ""
    first, last = task.lines
    lines = task.text.splitlines(keepends=True)
    left = iter(region.splitlines(keepends=True))
    for number in range(first, last + 1):
        line = lines[number - 1]
        if number not in task.touched and line.strip() and not any(line == other for other in left):
            return f"line {number} has changed: {line.strip()}"
    return ""
