"""The part of a region that the model rewrites: its lines without the blank ones around them."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lacuna_model.core.context import Answering, Gap, Layout, TextTokenizer
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.text.lines import indentation

# A region has at most so many lines and tokens: the model reads all of it and may write all of it again.
MAX_LINES = 400
MAX_TOKENS = 4000


@dataclass(frozen=True, slots=True)
class EditedPart:
    """The bytes from ``start`` to ``end`` of a document, which the model writes again.

    ``before`` and ``after`` are the texts of the region around it, which stay: blank lines, and the ``indentation`` of
    the part's first line. ``old`` is the part with its indentation and with line feeds as line ends, ``newline`` the
    document's own line end.
    """

    start: int
    end: int
    before: str
    after: str
    indentation: str
    old: str
    newline: str

    @classmethod
    def of(cls, text: bytes, region: Region) -> "EditedPart":
        """The part of a region; raises RequestError where the region cannot be rewritten."""
        where = f"region {region.start}..{region.end}"
        if region.regex or region.json_schema or region.single_line:
            raise RequestError(f"{where} is rewritten; it cannot have a pattern, a schema or single_line, too")
        starts_line = region.start == 0 or text[region.start - 1 : region.start] == b"\n"
        ends_line = region.end in (region.start, len(text)) or text[region.end - 1 : region.end] == b"\n"
        if not (starts_line and (ends_line or text[region.end : region.end + 1] in (b"\n", b"\r"))):
            raise RequestError(f"{where} is rewritten, so it has to be whole lines")
        whole = text[region.start : region.end].decode()
        if not whole.strip():
            raise RequestError(f"{where} is blank; there is nothing to rewrite")
        if (lines := whole.count("\n") + 1) > MAX_LINES + 1:
            raise RequestError(f"{where} has {lines:,} lines; at most {MAX_LINES} are rewritten at once")
        first = indentation(whole)
        last = whole[len(whole.rstrip()) :]
        newline = "\r\n" if "\r\n" in whole else "\n"
        ended = newline if newline in last else ""
        body = whole[len(first) : len(whole) - len(last)] + last.partition(newline)[0] * bool(ended) + ended
        start = region.start + len(first.encode())
        lead = first.rpartition("\n")[2]
        old = (lead + body).replace("\r\n", "\n")
        after = whole[len(first) + len(body) :]
        return cls(start, start + len(body.encode()), first, after, lead, old, newline)

    @property
    def text(self) -> str:
        """The part as it stands in the document, without its indentation."""
        return self.old[len(self.indentation) :].replace("\n", self.newline)

    def narrowed(self, region: Region, shift: int = 0) -> Region:
        """The region of the part alone, ``shift`` bytes further on."""
        return msgspec.structs.replace(region, start=self.start + shift, end=self.end + shift)

    def draft(self, tokenizer: TextTokenizer) -> list[int]:
        """The tokens of the part, from the last character of its indentation on: that is of its first word's token.

        Raises RequestError where there are too many.
        """
        tokens = tokenizer.encode(self.old[max(len(self.indentation) - 1, 0) :])
        if len(tokens) > MAX_TOKENS:
            raise RequestError(f"the region has {len(tokens):,} tokens; at most {MAX_TOKENS:,} are rewritten at once")
        return tokens

    def layout(
        self, prompt: Sequence[int], draft: Sequence[int], fences: frozenset[int], *, as_old: bool = False
    ) -> Layout:
        """The layout of a prompt behind whose last token the model writes the part again."""
        gap, answering = Gap(0, self.indentation[-1:].encode()), Answering(prompt[-1], fences, as_old)
        return Layout((), (tuple(prompt[:-1]), ()), (gap,), (tuple(draft),), answering)

    def written(self, fill: str) -> str:
        """The part's new text, for the fill that the model wrote after the indentation: it ends as the part did."""
        body = fill.rstrip("\n")
        ended = "\n" if self.old.endswith("\n") and body else ""
        return (body + ended).replace("\r\n", "\n").replace("\n", self.newline)

    def whole(self, fill: str) -> str:
        """The whole region with ``fill`` as its part."""
        return self.before + fill + self.after
