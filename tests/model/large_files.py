"""Large files of real code in three languages, made of sources that are there wherever the tests run."""

import argparse
import ast
import configparser
import pickletools
import re
import tarfile
import typing
from functools import cache
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = {"python": "large.py", "typescript": "large.ts", "c": "large.c"}
_MODULES = (argparse, ast, configparser, pickletools, tarfile, typing)
_OWN = re.compile(r"\b([a-z]+_[a-z_]+|[a-z]+[A-Z]\w+)\b")


def _sources(language: str) -> list[str]:
    if language == "python":
        return [Path(module.__file__ or "").read_text() for module in _MODULES]
    folder = {"typescript": "editor-clients/vscode/src", "c": "kernels/lacuna_kernels/csrc"}[language]
    return [file.read_text() for file in sorted((ROOT / folder).iterdir()) if file.suffix in (".ts", ".c", ".h")]


@cache
def large(language: str, lines: int = 20_000) -> str:
    """A text of about so many lines: modules, again and again with other names."""
    found, size = list[str](), 0
    for number in count():
        for source in _sources(language):
            found.append(_OWN.sub(rf"\g<1>{number}", source) if number else source)
            size += found[-1].count("\n")
            if size >= lines:
                return "\n".join(found)
    raise AssertionError


def bodies(text: str, language: str) -> list[int]:
    """Offsets at the ends of lines within bodies: near the start, in the middle and near the end of a text."""
    line = re.compile(r"\n(?:    |  |\t)[^\n]*(?:;|\)|\w)(?=\n(?:    |  |\t)+\w)")
    ends = [match.end() for match in line.finditer(text)]
    return [ends[len(ends) // 50], ends[len(ends) // 2], ends[-len(ends) // 50]]
