"""One gap over a whole request: its fills as tokens and as text, what may complete them, and its region's rules."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.region.region_rules import RegionRules
from lacuna_model.syntax.text.anchors import Anchors
from lacuna_model.syntax.text.literals import finish_token
from lacuna_model.syntax.text.minimal_completions import Closer
from lacuna_model.syntax.text.strings_with_code import Substitutions
from lacuna_model.syntax.text.tags import Completions, Tags
from lacuna_model.syntax.text.vocabulary import Vocabulary, is_utf8

WORD_END, WORD_START = re.compile(rb"[\w$]\Z"), re.compile(rb"[\w$]")

Nested = Tags | Anchors | Substitutions


class GapText:
    """What is constant for one gap over a whole fill: tokens as bytes, its completions and its rules.

    ``prefix`` is the text in front of the gap that its tokens say anew (the healed token): they begin with it, the text
    of a fill does not.
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
        # Where completions come from: guesses from the text around the gap, and the grammar of a valid file.
        self._make_closer, self._repair = closer, repair
        self._reads, self._nested = reads, nested

    def closed_by(self, closer: Callable[[], Closer]) -> "GapText":
        """The same gap, with other completions."""
        other = GapText(self.vocabulary, self.rules, closer, nested=self._nested)
        other.prefix = self.prefix
        return other

    @cached_property
    def _closer(self) -> Closer | None:
        """Made when first asked for: a fill whose drafts are valid needs none."""
        return self._make_closer() if self._make_closer is not None else None

    def written(self, tokens: Sequence[int]) -> bytes:
        """The text that tokens put into the gap; nothing as long as they only say what stands in front of it."""
        return self.vocabulary.text(tokens)[len(self.prefix) :]

    def text(self, tokens: Sequence[int]) -> bytes:
        """The same without what the region does not take."""
        return self.rules.cut(self.written(tokens))

    def leaves(self, tokens: Sequence[int]) -> bool:
        """Whether tokens go on in a line that the region does not take."""
        return self.text(tokens) != self.written(tokens)

    def begins(self, tokens: Sequence[int]) -> bool:
        """Whether tokens begin with what stands in front of the gap."""
        return self.vocabulary.text(tokens).startswith(self.prefix)

    def accepts(self, text: bytes) -> bool:
        """Whether a text is UTF-8 and keeps the region's rules."""
        return is_utf8(text) and self.rules.accepts(text)

    def holds(self, text: bytes) -> bool:
        """Whether a text has as many tokens as the region asks for."""
        return len(self.vocabulary.encode(self.prefix + text)) >= self.rules.least_tokens

    def fill(self, prefix: tuple[int, ...], closing: bytes) -> Fill:
        """The fill of these tokens and this completion."""
        tokens = prefix + self.vocabulary.encode(closing) if closing else prefix
        return Fill(tokens, self.text(tokens), len(prefix), closing)

    def tails(self, before: Fill | None, tokens: tuple[int, ...]) -> list[bytes]:
        """The completion of an earlier fill, if as much is open behind these tokens as was behind that fill's own."""
        if before is None or not before.closing or self._closer is None:
            return []
        text = self.vocabulary.text(tokens)
        if WORD_END.search(text) and WORD_START.match(before.closing):
            return []  # the word would become another one
        known = self._closer.open_ends(self.written(before.tokens[: before.prefix]))
        return [before.closing] if known == self._closer.open_ends(self.written(tokens)) else []

    def repairs(self, tokens: tuple[int, ...]) -> Iterator[bytes]:
        """Completions by the grammar, where a valid fill is known; what is open in a string is closed first."""
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
        """Whether the grammar reads a fill's beginning behind what is in front of it; None: it is not known."""
        if self._closer is None or self._reads is None:
            return None
        text = self.written(tokens)
        found = [self._reads(text + end) for end in self._token_ends(self._closer, text)]
        return None if None in found else any(found)

    def _token_ends(self, closer: Closer, text: bytes) -> Iterable[bytes]:
        """What may end the literal that a text stops in."""
        inside = closer.open_ends(text)[1]
        half = finish_token(text, inside)
        return dict.fromkeys([half, inside, b""] if half else [inside, b""])

    @property
    def ends_inside(self) -> bool:
        """Whether the text behind the gap begins in a string or a comment."""
        return self._closer is not None and self._closer.ends_inside

    def due(self, tokens: tuple[int, ...]) -> bytes:
        """What of the prefix is still to come behind these tokens."""
        text = self.vocabulary.text(tokens)
        return self.prefix[len(text) :] if self.prefix.startswith(text) else b""

    def completions(self, tokens: tuple[int, ...]) -> Iterator[bytes]:
        """Completions that the rules ask for, then those that the syntax does."""
        due, text = self.due(tokens), self.written(tokens)
        for closing in self.rules.completions(text):
            yield due + closing
        if self._closer is None:
            yield due
            return
        ends: Completions = self._closer.completions
        for nested in self._nested:
            ends = partial(nested.completions, others=ends)
        for closing in ends(text):
            yield due + closing


def gap_texts(
    text: bytes, regions: Sequence[Region], vocabulary: Vocabulary, document: Document | None
) -> list[GapText]:
    """The gaps of a request; those of a text in no language that is known are completed by their rules alone."""
    found = []
    for gap, region in enumerate(regions):
        until = regions[gap + 1].start if gap + 1 < len(regions) else len(text)
        rules = RegionRules(region, text[region.end : until])
        if document is None:
            found.append(GapText(vocabulary, rules))
        else:
            sources = partial(_closer, document, gap), partial(document.repairs, gap), partial(document.reads, gap)
            nested = _nested(document.language, text[: region.start], text[region.end :])
            found.append(GapText(vocabulary, rules, *sources, nested))
    return found


def _nested(language: Language, before: bytes, after: bytes) -> list[Nested]:
    """What knows of the ends that are no brackets, as far as a language has such."""
    tags = Tags(before, after) if language.lexicon.tags else None
    anchors = Anchors(before) if language.lexicon.anchors else None
    inner = Substitutions(language.strings, before) if language.strings is not None else None
    return [one for one in (tags, anchors, inner) if one is not None]


def _closer(document: Document, gap: int) -> Closer:
    balance, index = document.balance(gap)
    return Closer(balance.sides(index))
