"""Code in strings: what is open in a line where strings hold code and code holds strings, and what ends it."""

from collections.abc import Iterator
from itertools import islice

from lacuna_model.languages.strings import Strings
from lacuna_model.syntax.text.tags import Completions

MOST_BEHIND = 3  # of what may follow the ends


class Substitutions:
    """The code in strings in the line of a gap, of which ``before`` is what stands in front of it."""

    def __init__(self, strings: Strings, before: bytes) -> None:
        self._strings = strings
        self._line = before[before.rfind(b"\n") + 1 :]

    def completions(self, fill: bytes, others: Completions) -> Iterator[bytes]:
        """The completions, and first those that end the code and the strings around it."""
        due = self._strings.open_ends(self._line + fill)
        closers = {closer for closer, inner in self._strings.strings.values() if inner}
        outer = next((place for place, closer in enumerate(due) if closer in closers), len(due))
        if outer < len(due) - 1:
            ends = b"".join(reversed(due[outer:]))
            yield ends
            yield from (ends + end for end in islice(others(fill + ends), MOST_BEHIND))
        yield from others(fill)

    def named(self, _fill: bytes, completion: bytes) -> bytes:
        """The completion as it is."""
        return completion
