"""Brackets of plain text: strings and comments are not told from code."""

from collections.abc import Iterable

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}


def step(mark: str) -> int:
    """By how much a mark changes the depth: 1 for an opening bracket, -1 for a closing one, else 0."""
    return (mark in CLOSER_OF) - (mark in OPENER_OF)


def depth(text: str) -> int:
    """How many more brackets a text opens than it closes, whatever their kinds."""
    return sum(map(text.count, CLOSER_OF)) - sum(map(text.count, OPENER_OF))


def closers(text: str) -> str:
    """What closes the brackets that a text leaves open, those that close nothing aside."""
    found = list[str]()
    for mark in text:
        if mark in CLOSER_OF:
            found.append(CLOSER_OF[mark])
        elif found and found[-1] == mark:
            found.pop()
    return "".join(reversed(found))


def unmatched(marks: Iterable[str]) -> list[str]:
    """The brackets among some marks that stay open or close nothing, in order."""
    found = list[str]()
    for mark in marks:
        if found and mark in OPENER_OF and found[-1] == OPENER_OF[mark]:
            found.pop()
        elif step(mark):
            found.append(mark)
    return found
