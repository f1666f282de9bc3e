"""Independent syntax oracles for benchmarks: the languages' own compilers and parsers, if available."""

import ast
import json
import re
import shutil
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Sequence

Oracle = Callable[[bytes], bool | None]
SECONDS = 20
C_PARSE_ERROR = re.compile(rb"error: (?:expected|unterminated|stray|missing terminating|unbalanced|extraneous)")


C_UNKNOWN_NAME = re.compile(
    rb"error: .*(?:not (?:been )?declared|undeclared|does not name a type|unknown type name|declaration .* no type)"
)


def oracle_for(language: str) -> Oracle | None:
    """Returns a function that checks whether a text of a language is well-formed, or None without a tool for it.

    The function may return None for a text, too: a C compiler takes an unknown type for a name, and its later errors
    say nothing about the syntax.
    """
    builtin: dict[str, Oracle] = {"python": _python, "json": _json, "toml": _toml}
    if language in builtin:
        return builtin[language]
    commands: dict[str, Sequence[str]] = {
        "javascript": ("node", "--check", "-"),
        "go": ("gofmt", "-e"),
        "bash": ("bash", "-n"),
        "c": ("gcc", "-fsyntax-only", "-w", "-x", "c", "-"),
        "cpp": ("g++", "-fsyntax-only", "-w", "-x", "c++", "-"),
    }
    command = commands.get(language)
    if command is None or shutil.which(command[0]) is None:
        return None
    return lambda text: _command(command, text)


def _command(command: Sequence[str], text: bytes) -> bool | None:
    done = subprocess.run(command, input=text, capture_output=True, timeout=SECONDS, check=False)
    if command[0] not in ("gcc", "g++"):
        return done.returncode == 0
    if C_PARSE_ERROR.search(done.stderr) is None:  # undeclared names and wrong types are no syntax errors
        return True
    first = next(line for line in done.stderr.splitlines() if b"error: " in line)
    return None if C_UNKNOWN_NAME.search(first) else False


def _python(text: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(ast.parse(text), "<case>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _toml(text: bytes) -> bool:
    try:
        tomllib.loads(text.decode())
    except ValueError:
        return False
    return True
