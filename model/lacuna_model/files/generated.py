"""Recognises files that compilers, bundlers and package managers generated."""

import re

_NAME = re.compile(
    r".*_pb2(_grpc)?\.pyi?|parsetab\.py|lextab\.py|_version\.py|versioneer\.py|.*\.pb(\.gw|\.cc|-c)?\.(go|h|c|cc)"
    r"|.*_generated\.\w+|zz_generated.*|.*\.generated\.\w+|.*[.-]min\.\w+"
    r"|.*\.(bundle|umd|iife|production|prod|development|global)(\.min)?\.[cm]?js"
)
_HEAD = re.compile(
    r"(?i)\b(auto(matically)?[- ]?generated|(is|was|been|file|code) (machine[- ])?generated (by|from|with)"
    r"|generated (by|from)\b|do not (edit|modify)\b|don't edit\b|machine generated)|@generated\b"
)
_HEAD_CHARACTERS = 1000
_MAX_LINE = 1000
_MAX_MEAN_LINE = 100


def generated_name(name: str) -> bool:
    """Whether a file's name shows that it was generated."""
    return _NAME.fullmatch(name) is not None


def generated_head(text: str) -> bool:
    """Whether the first characters of a file announce that it was generated."""
    return _HEAD.search(text[:_HEAD_CHARACTERS]) is not None


def minified(text: str) -> bool:
    """Whether the lines are too long to have been written by hand."""
    lines = text.splitlines() or [""]
    return max(map(len, lines)) > _MAX_LINE or len(text) / len(lines) > _MAX_MEAN_LINE
