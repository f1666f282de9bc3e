"""A region's rules for its fill besides the syntax of the file: lines, words, a regular expression, a JSON schema."""

import re
from collections.abc import Iterator, Sequence

from lacuna_model.core.params import Region
from lacuna_model.core.stopping import LineLimit
from lacuna_model.syntax.region.byte_grammar import ByteGrammar, json_schema_grammar, regex_grammar

WORD, HALF_WORD = re.compile(rb"[\w\x80-\xff]"), re.compile(rb"[\w\x80-\xff]\Z")


class RegionRules:
    """The rules of one region; ``after`` is the text that follows it."""

    def __init__(self, region: Region, after: bytes) -> None:
        self.least_tokens = region.min_tokens
        self._after = after
        self._limit = LineLimit.of(region, after)
        self._wanted = tuple(word.encode() for word in region.must_contain)
        self._banned = tuple(word.encode() for word in region.must_not_contain)
        grammars = []
        if region.regex:
            grammars.append(regex_grammar(region.regex))
        if region.json_schema:
            grammars.append(json_schema_grammar(region.json_schema))
        self._grammars: Sequence[ByteGrammar] = tuple(grammars)

    @property
    def empty(self) -> bool:
        """Whether there is no rule."""
        return not (self._limit or self._wanted or self._banned or self._grammars)

    def is_followed_by(self, text: bytes) -> bool:
        """Whether the suffix begins with a text that is not blank."""
        return bool(text.strip()) and self._after.startswith(text)

    @property
    def ends_line(self) -> bool:
        """Whether the suffix begins with a line end, so that a fill of whole lines needs none of its own."""
        return self._after[:1] in (b"\n", b"\r")

    def parts_words(self, fill: bytes, end: int) -> bool:
        """Whether a fill that is cut to its first ``end`` bytes neither cuts a word nor ends in one that goes on."""
        return not HALF_WORD.search(fill[:end]) or not (WORD.match(fill[end:]) or WORD.match(self._after))

    def cut(self, fill: bytes) -> bytes:
        """Return the fill without the lines beyond the limit; what the model writes there is ignored."""
        return self._limit.cut(fill) if self._limit else fill

    def accepts(self, fill: bytes) -> bool:
        """Whether a complete fill (already cut) keeps every rule."""
        return (
            all(word in fill for word in self._wanted)
            and not any(word in fill for word in self._banned)
            and all(grammar.matches(fill) for grammar in self._grammars)
        )

    def goes_on(self, fill: bytes) -> bool:
        """Whether the beginning of a fill can be continued so that it keeps every rule."""
        return not any(word in fill for word in self._banned) and all(one.begins(fill) for one in self._grammars)

    def completions(self, fill: bytes) -> Iterator[bytes]:
        """Yield texts to append to the beginning of a fill so that the rules hold; none where no rule requires text."""
        if self._grammars:
            ending = self._grammars[0].completion(fill)
            if ending is not None:
                yield ending
        missing = [word for word in self._wanted if word not in fill]
        if missing:
            yield b" ".join(missing)
            yield b"(" + b", ".join(missing) + b")"


def in_line(regions: Sequence[Region]) -> bool:
    """Whether each region takes only one line."""
    return all(region.single_line or region.max_lines == 1 for region in regions)
