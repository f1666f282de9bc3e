"""Closing tags: the names of the tags that a gap must close, since grammars do not check tag names."""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

from lacuna_model.core import work

REACH = 20_000  # bytes on either side of a gap
MAX_BEHIND = 3  # completions that follow the tags
VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
# A value in an opening tag may contain ">". After a word, and outside all tags, "<" begins a list of types. What has
# been read is not read in another way, so a tag that does not end takes time linear in its length. It has few parts.
ATTRIBUTES = rb"(?:[^<>{}\"';()/]++|/(?!>)|\"[^\"]*+\"|'[^']*+'|\{(?:[^{}]++|\{[^{}]*+\})*+\}){0,5000}+"
TAG = re.compile(rb"<(?P<closing>/?)(?:(?P<name>[A-Za-z_][\w.:-]*+)" + ATTRIBUTES + rb")?(?P<closed>/?)>")
BEGUN = re.compile(rb"<[A-Za-z_][\w.:-]*+\s" + ATTRIBUTES + rb"\Z")
NEAR = 400  # bytes in which a tag that is not ended begins
CLOSING = re.compile(rb"</[\w.:-]*>")
HALF = re.compile(rb"</([\w.:-]*)\Z")
HALF_OPENING = re.compile(rb"<([\w.:-]*)\Z")
WORD = re.compile(rb"\w")

Completions = Callable[[bytes], Iterator[bytes]]


class Tags:
    """The tags that are open ``before`` a gap, and those that the text ``after`` it closes."""

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before, self._behind = before[-REACH:], after[:REACH]
        self._opened: dict[bytes, list[bytes]] = {}  # after the beginning of a fill; cached

    @cached_property
    def _lacking(self) -> list[bytes]:
        return scan_tags(self._behind)[1]

    def open_in(self, fill: bytes) -> list[bytes]:
        """The names of the tags that are open after the beginning of a fill, outermost first."""
        if fill not in self._opened:
            self._opened[fill] = scan_tags(self._before + fill)[0]
        return self._opened[fill]

    def unclosed(self, fill: bytes) -> list[bytes]:
        """The names of the open tags that the suffix does not close, innermost first."""
        opened = self.open_in(fill)
        if not self._lacking:
            return opened[::-1]
        outer = next((place for place in reversed(range(len(opened))) if opened[place] == self._lacking[0]), None)
        return opened[:outer:-1] if outer is not None else []

    def completions(self, fill: bytes, others: Completions) -> Iterator[bytes]:
        """Yield completions that begin with the due closing tags, then the ``others`` with the right names."""
        opening = HALF_OPENING.search(self._before + fill)
        if opening is not None and self._lacking and self._lacking[0].startswith(opening[1]):
            yield self._lacking[0][len(opening[1]) :]
        open_names, half = self.unclosed(fill), HALF.search(self._before + fill)
        written = b"</" + half[1] if half is not None else b""
        for names in (open_names, open_names[:1]) if len(open_names) > 1 else (open_names,) if open_names else ():
            tags = b"".join(b"</%b>" % name for name in names)
            if half is not None and self._behind.startswith(b">"):
                tags = tags.removesuffix(b">")
            if tags.startswith(written):
                rest = tags[len(written) :]
                yield from (rest + end for end in islice(others(fill + rest), MAX_BEHIND))
        for number, other in enumerate(others(fill)):
            yield self.named(fill, other)
            if number < MAX_BEHIND and BEGUN.search((self._before + fill + other)[-NEAR:]):
                yield self.named(fill, other) + b"/>"

    def named(self, fill: bytes, completion: bytes) -> bytes:
        """A completion whose closing tags have the names of the tags that they close."""
        parts, since = list[bytes](), 0
        opened: list[bytes] | None = None
        for match in CLOSING.finditer(completion):
            part = completion[since : match.start()]
            opened = scan_tags(part, opened)[0] if opened is not None else [*self.open_in(fill + part)]
            parts += [part, b"</%b>" % opened.pop() if opened else match[0]]
            since = match.end()
        return b"".join([*parts, completion[since:]])


def scan_tags(text: bytes, opened: list[bytes] | None = None) -> tuple[list[bytes], list[bytes]]:
    """Return the names of the tags that a text leaves open, and of those that it closes without opening, in order.

    ``opened`` has those that are open before the text, and becomes those that it leaves open.
    """
    opened, lacking = [] if opened is None else opened, list[bytes]()
    for match in work.checked(TAG.finditer(text)):
        name = match["name"] or b""
        if match["closing"]:
            if name in opened:
                while opened.pop() != name:
                    pass
            else:
                lacking.append(name)
        elif not match["closed"] and name not in VOID and (opened or not WORD.match(text, match.start() - 1)):
            opened.append(name)
    return opened, lacking
