"""One gap over a whole request: its fills as tokens and as text, its completions, and its region's rules."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

from lacuna_model.core import work
from lacuna_model.core.constraint import Commit, GapView, fill_tokens
from lacuna_model.core.params import Region
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.region.region_rules import RegionRules
from lacuna_model.syntax.text.literals import finish_token
from lacuna_model.syntax.text.minimal_completions import Closer
from lacuna_model.syntax.text.nested import Nested, completed, nested_in
from lacuna_model.syntax.text.vocabulary import Vocabulary, is_utf8

FILL_NS = 23_000  # of work
WORD_END, WORD_START = re.compile(rb"[\w$]\Z"), re.compile(rb"[\w$]")


class GapText:
    """The constant parts of one gap over a whole fill: tokens as bytes, completions, and rules.

    ``prefix`` is the text before the gap that its tokens repeat (the healed token): they begin with it, the text of a
    fill does not.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rules: RegionRules,
        closer: Callable[[], Closer] | None = None,
        repair: Callable[[bytes], Iterator[bytes]] | None = None,
        reads: Callable[[bytes], bool | None] | None = None,
        nested: Sequence[Nested] = (),
    ) -> None:
        self.vocabulary = vocabulary
        self.rules = rules
        self.prefix = b""
        # Sources of completions: guesses from the text around the gap, and the grammar, given a valid file.
        self._make_closer, self._repair = closer, repair
        self._reads, self._nested = reads, nested

    def closed_by(self, closer: Callable[[], Closer]) -> "GapText":
        """Return the same gap with other completions."""
        other = GapText(self.vocabulary, self.rules, closer, nested=self._nested)
        other.prefix = self.prefix
        return other

    @cached_property
    def _closer(self) -> Closer | None:
        """Made on first use: a fill whose drafts are valid needs none."""
        return self._make_closer() if self._make_closer is not None else None

    def written(self, tokens: Sequence[int]) -> bytes:
        """Return the text that tokens put into the gap; empty as long as they only repeat the ``prefix``."""
        return self.vocabulary.text(tokens)[len(self.prefix) :]

    def text(self, tokens: Sequence[int]) -> bytes:
        """Return the text that tokens put into the gap, without the lines that the region does not take."""
        return self.rules.cut(self.written(tokens))

    def leaves(self, tokens: Sequence[int]) -> bool:
        """Whether tokens continue in a line that the region does not take."""
        return self.text(tokens) != self.written(tokens)

    def leaves_with(self, view: GapView, commit: Commit) -> bool:
        """Whether a commit is for the first open slot of the gap and in a line that the region does not take."""
        committed = fill_tokens(view, self.vocabulary.eog_id)
        return len(view.done) + commit.slot == len(committed) and self.leaves((*committed, commit.token))

    def begins(self, tokens: Sequence[int]) -> bool:
        """Whether the text of the tokens begins with the ``prefix``."""
        return self.vocabulary.text(tokens).startswith(self.prefix)

    def accepts(self, text: bytes) -> bool:
        """Whether a text is UTF-8 and keeps the region's rules."""
        return is_utf8(text) and self.rules.accepts(text)

    def holds(self, text: bytes) -> bool:
        """Whether a text has at least as many tokens as the region requires."""
        return len(self.vocabulary.encode(self.prefix + text)) >= self.rules.least_tokens

    def fill(self, prefix: tuple[int, ...], closing: bytes) -> Fill:
        """Return the fill of these tokens and this completion."""
        work.spend(FILL_NS)
        tokens = prefix + self.vocabulary.encode(closing) if closing else prefix
        return Fill(tokens, self.text(tokens), len(prefix), closing)

    def tails(self, before: Fill | None, tokens: tuple[int, ...]) -> list[bytes]:
        """Return the completion of an earlier fill, if the same brackets and string are open after these tokens."""
        if before is None or not before.closing or self._closer is None:
            return []
        text = self.vocabulary.text(tokens)
        if WORD_END.search(text) and WORD_START.match(before.closing):
            return []  # the last word would become another one
        known = self._closer.open_ends(self.written(before.tokens[: before.prefix]))
        return [before.closing] if known == self._closer.open_ends(self.written(tokens)) else []

    def repairs(self, tokens: tuple[int, ...]) -> Iterator[bytes]:
        """Yield completions by the grammar, where a valid fill is known; an open string is closed first."""
        if self._closer is None or self._repair is None:
            return
        due, text = self.due(tokens), self.written(tokens)
        ends = self._token_ends(self._closer, text)
        if b"**/" in ends and self.ends_inside:
            yield due + b"*"
        for start in ends:
            for closing in self._repair(text + start):
                for nested in self._nested:
                    closing = nested.named(text + start, closing)
                yield due + start + closing

    def reads(self, tokens: tuple[int, ...]) -> bool | None:
        """Whether the grammar can read the beginning of a fill after the text before the gap; None if unknown."""
        if self._closer is None or self._reads is None:
            return None
        text = self.written(tokens)
        found = [self._reads(text + end) for end in self._token_ends(self._closer, text)]
        return None if None in found else any(found)

    def _token_ends(self, closer: Closer, text: bytes) -> Iterable[bytes]:
        """The texts that may end the literal in which a text stops."""
        inside = closer.open_ends(text)[1]
        half = finish_token(text, inside)
        return dict.fromkeys([half, inside, b""] if half else [inside, b""])

    @property
    def ends_inside(self) -> bool:
        """Whether the suffix begins in a string or a comment."""
        return self._closer is not None and self._closer.ends_inside

    def due(self, tokens: tuple[int, ...]) -> bytes:
        """Return the rest of the ``prefix`` that these tokens do not hold yet."""
        text = self.vocabulary.text(tokens)
        return self.prefix[len(text) :] if self.prefix.startswith(text) else b""

    def completions(self, tokens: tuple[int, ...]) -> Iterator[bytes]:
        """Yield completions that the rules require, then those that the syntax requires."""
        due, text = self.due(tokens), self.written(tokens)
        for closing in self.rules.completions(text):
            yield due + closing
        if self._closer is None:
            yield due
            return
        for closing in completed(self._closer.completions, self._nested)(text):
            yield due + closing


def gap_texts(
    text: bytes, regions: Sequence[Region], vocabulary: Vocabulary, document: Document | None
) -> list[GapText]:
    """Return the gaps of a request; without a ``document`` (unknown language) only their rules complete them."""
    found = []
    for gap, region in enumerate(regions):
        until = regions[gap + 1].start if gap + 1 < len(regions) else len(text)
        rules = RegionRules(region, text[region.end : until])
        if document is None:
            found.append(GapText(vocabulary, rules))
        else:
            sources = partial(_closer, document, gap), partial(document.repairs, gap), partial(document.reads, gap)
            nested = nested_in(document.language, text[: region.start], text[region.end :])
            found.append(GapText(vocabulary, rules, *sources, nested))
    return found


def _closer(document: Document, gap: int) -> Closer:
    balance, index = document.balance(gap)
    return Closer(balance.sides(index))
