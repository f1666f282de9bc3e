"""The lists of parameters in a text, by its brackets."""

import re
from collections.abc import Iterator

_MARK = re.compile(r"[()\[\]{},]|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?")
# The characters of a definition that are looked at for its parameters.
FAR = 5_000


def closed(code: str, start: int) -> int:
    """The end of the bracket that opens at an offset; the offset where none opens there, or none closes it soon."""
    depth = 0
    if not code.startswith(("(", "{"), start):
        return start
    for match in _MARK.finditer(code, start, start + FAR):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
            if not depth:
                return match.end()
    return start


def split(inner: str) -> Iterator[str]:
    """The parameters of a list, each on one line."""
    depth = last = 0
    for match in _MARK.finditer(inner):
        if match[0] == "," and not depth:
            yield " ".join(inner[last : match.start()].split())
            last = match.end()
        elif match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
    if rest := " ".join(inner[last:].split()):
        yield rest
