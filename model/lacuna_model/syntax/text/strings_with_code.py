"""Code in strings: the strings and substitutions that are open in a line, and their closers."""

from collections.abc import Iterator
from itertools import islice

from lacuna_model.languages.strings import Strings
from lacuna_model.syntax.text.tags import Completions

MAX_BLANK = 80  # bytes after the gap in which the closer of its code is looked for
MAX_BEHIND = 3  # completions that follow the closers


class Substitutions:
    """The code in strings in the line of a gap between the texts ``before`` and ``after``; ``operand`` is code."""

    def __init__(self, strings: Strings, before: bytes, after: bytes, operand: bytes) -> None:
        self._strings = strings
        self._line = before[before.rfind(b"\n") + 1 :]
        self._after = after[:MAX_BLANK].lstrip(b" \t")
        self._operand = operand

    def completions(self, fill: bytes, others: Completions) -> Iterator[bytes]:
        """Yield what completes the code, the closers of it and of the strings around it, then those of ``others``."""
        due = self._strings.open_ends(self._line + fill)
        closers = {closer for closer, inner in self._strings.strings.values() if inner}
        outer = next((place for place, closer in enumerate(due) if closer in closers), len(due))
        in_code = due if outer < len(due) - 1 else next(self._strings.within(self._line + fill), None)
        if in_code and self._after.startswith(in_code[-1]):
            yield b""
            yield self._operand
        if outer < len(due) - 1:
            ends = b"".join(reversed(due[outer:]))
            yield ends
            yield from (ends + end for end in islice(others(fill + ends), MAX_BEHIND))
        yield from others(fill)

    def named(self, _fill: bytes, completion: bytes) -> bytes:
        """Return the completion unchanged."""
        return completion
