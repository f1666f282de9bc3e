"""The suffix of a gap, as far as a completion has to fit it."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import product

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.columns import coming_lines, needs
from lacuna_model.syntax.text.literals import carried_quote, open_comment, open_quote
from lacuna_model.syntax.text.scan import FAR, TOP_LEVEL, UNKNOWN, Scan, scan, scan_brackets, string_end

WINDOW = 4000
MAX_KEPT = 16
OPENERS = {b")": b"(", b"]": b"[", b"}": b"{", b">": b"<"}
STATEMENT = re.compile(
    rb"\s*(?:@|(?:async|await|assert|break|class|continue|def|del|for|from|global|if|import|nonlocal|pass|raise|return|"
    rb"try|while|with|yield)\b)"
)
PROSE = re.compile(rb" ?[\w'`,.()-]+ [a-z'`-]+ [a-z'`,.-]+(?: [a-z]|\Z)")
BINARY = re.compile(rb"\s*(?:[-+*/%&|^<>=!?]|(?:and|or|in|is|not in|if|instanceof|as)\b)")
ARROW = re.compile(rb"\s*(?::[^\n=]*)?=>")
BODY = re.compile(rb"\s*(?:\{|:|->|(?:throws|where|const|override|noexcept)\b|[\w*.\[\]]+ \{|\([^)\n]*\) \{)")
# The beginning of a block's head, by the text after the block.
HEAD_OF = {
    re.compile(pattern): head
    for pattern, head in (
        (rb"\s*(?:catch|finally)\b", b"try"),
        (rb"\s*else\b", b"if"),
        (rb"\s*while\b", b"do "),
        (rb"\s*from\s*[\"']", b"import "),
        (rb"\s*(?:(?://[^\n]*\n|#\[[^\]\n]*\])\s*)*(?:pub )?fn\b", b"fn x() "),
        (rb"\{", b"x: struct "),
        (rb",[ \t]*\n\s*(?:\w+(?:: |,)|\})", b"x: x "),
        (rb",?\s*(?://[^\n]*\n\s*)*[^\n;{}]+ => ", b"x => "),
    )
}
METHOD = re.compile(rb"\n[ \t]+(?:pub )?fn \w+[^\n;{]*\((?:\s*&)?(?:mut )?self\b")
SIGNATURE_END = re.compile(rb"\s*(?:->[^\n]*)?:")
CAUSE = re.compile(rb"\s*from\b")
CLAUSE_OF = {b"else": b"if", b"catch": b"try", b"finally": b"try"}
CLAUSE = re.compile(rb"\s*(else|catch|finally)\b")
# Code that continues the text before it, even from the line above.
CONTINUES = re.compile(
    rb"\s*(?:\?\.|\.(?=[\w(])|\?(?=\s)|&&|\|\||[-+*%^|](?=\s)|/(?=\s)|[=!]=|<<|>>|(?:as|instanceof)\b)"
)
CONTINUES_IN_BRACKETS = re.compile(CONTINUES.pattern + rb"|\s*(?:and|or|in|is|if|else|for)\b")
# A line in no bracket, where blocks are columns.
OUTSIDE = re.compile(
    rb"\n[ \t]*(?:@|(?:return|assert|raise|import|def|class|with|try|pass|break|continue|del|while|elif|except)\b|"
    rb"(?:if|for|else|async)\b[^\n]*:[ \t]*\n|[\w.]+ [-+*/|&]?= )"
)


class RightSide:
    """The text after a gap: the rest of its line, and the brackets and strings that it closes.

    ``unmatched`` are its closers without an opener, innermost first, ``stack`` its openers without a closer, outermost
    first. ``levels``, ``lowest`` and ``statements`` describe the lines between them (see ``Scan``). ``inside`` is the
    closer of the string or comment that the text begins in, given that of the gap (``before``). ``header`` is true if
    the line is the header of an indented block. ``coming`` are the lines after the statement's last bracket, ``needs``
    the blocks that they must be in. ``whole`` is true if the text shows everything that could close a bracket; between
    two gaps it mostly does not.
    """

    def __init__(self, text: bytes, lexicon: Lexicon, before: bytes = b"", *, to_the_end: bool = True) -> None:
        stop = TOP_LEVEL.search(text, 0, WINDOW) if lexicon.columns else None
        window = text[: stop.start() if stop else WINDOW]
        self.lexicon = lexicon
        self.text = text
        self.to_the_end = to_the_end
        self.rest = text.split(b"\n", 1)[0]
        self._before = before
        self._openings: dict[tuple[tuple[bytes, ...], bool], list[bytes]] = {}
        if to_the_end:
            self.inside = open_comment(text, lexicon) or open_quote(text, lexicon)
        else:
            self.inside = carried_quote(text, before, lexicon)
        self._start = start = string_end(window, self.inside) or 0 if self.inside else 0
        clean = window[start:]
        state = brackets = scan(clean, lexicon, Scan(column=UNKNOWN))
        if len(window) < len(text) and not lexicon.columns:
            brackets = scan_brackets(text[start:FAR], lexicon)
        outside = lexicon.columns and OUTSIDE.search(clean) is not None
        self.whole = stop is not None or outside or (to_the_end and len(text) <= FAR)
        self.unmatched = brackets.unmatched
        self.stack = brackets.stack
        self.lowest = state.lowest if len(state.unmatched) == len(brackets.unmatched) else UNKNOWN
        self.statements = state.statements
        seen = state.levels[: len(brackets.levels)]
        self.levels = seen + (UNKNOWN,) * (len(brackets.levels) - len(seen))
        self.blank = not self.rest.strip()
        statement_end = start + (state.unmatched[-1].end if state.unmatched else 0)
        after_statement = text[statement_end:] if lexicon.columns else text
        code = scan(after_statement.split(b"\n", 1)[0], lexicon)
        self.header = lexicon.columns and code.last == b":" and not code.stack
        self.coming = coming_lines(after_statement)
        self.needs = needs(window)

    @cached_property
    def below(self) -> "RightSide":
        """The same side without the rest of the line."""
        return RightSide(self.text[len(self.rest) :], self.lexicon, self._before, to_the_end=self.to_the_end)

    @property
    def statement(self) -> bool:
        """Whether the rest of the line begins as only a statement does."""
        return bool(STATEMENT.match(self.rest))

    @property
    def prose(self) -> bool:
        """Whether the rest of the line reads like the end of a comment."""
        return bool(PROSE.match(self.rest)) and not self.inside and not self.statement

    @property
    def margin(self) -> int:
        """The number of leading spaces in the rest of the line, if a statement can begin after them; else 0."""
        blank = len(self.rest) - len(self.rest.lstrip(b" "))
        # An indented "if" begins a statement; after a single blank it is a conditional expression.
        operator = BINARY.match(self.rest) and not (blank > 1 and self.statement)
        return blank if not self.blank and not self.inside and not operator else 0

    def openings(self, closers: Sequence[bytes], *, outside: bool = False) -> list[bytes]:
        """Return the openers of the brackets and the quote that the suffix closes, with texts that may precede them.

        If they are ``outside`` all brackets, the outermost block needs a head. The likeliest come first. The result is
        cached.
        """
        key = tuple(closers), outside
        if key not in self._openings:
            callers = self._callers(closers) if b")" in closers else [b""]
            heads = self._heads(closers, outside=outside) if b"}" in closers else [b""]
            self._openings[key] = [self._opening(*key, *choice) for choice in product(heads, callers, self._clauses)]
        return self._openings[key]

    def _opening(self, closers: Sequence[bytes], outside: bool, head: bytes, caller: bytes, clause: bytes) -> bytes:
        """One opening: a caller before the outermost parenthesis, a head before the innermost block, then a clause."""
        words = {closer: head + b"\n" for _, closer, head in reversed(self.lexicon.blocks)}
        parts = [OPENERS[mark] if mark in OPENERS else words[mark] for mark in closers]
        for place, mark in enumerate(closers):
            if mark == b")":
                parts[place] = (self.lexicon.operand if b")" in closers[:place] else caller) + b"("
            elif mark == b"}" and b"}" not in closers[place + 1 :]:
                parts[place] = head + b"{"
            elif mark == b"}":
                parts[place] = self._likely(len(closers) - 1 - place, outside=outside and not place) + b"{"
        goes_on = self.rest[:1] == b"," or BINARY.match(self.rest) or self._continues
        operand = self.lexicon.operand if closers and not self.inside and goes_on else b""
        return b"".join(parts) + clause + operand + self.lexicon.opener_of(self.inside)

    def _callers(self, closers: Sequence[bytes]) -> list[bytes]:
        """Texts that may precede a parenthesis, by the text after its closer: parameters or arguments."""
        operand = self.lexicon.operand
        after = self._after(len(closers) - 1 - closers.index(b")"))
        if self.lexicon.columns:
            if SIGNATURE_END.match(after):
                return [b"def " + operand, b"if " + operand, b"class " + operand]
            return [b"raise " + operand] if CAUSE.match(after) else [operand]
        if ARROW.match(after):
            return [b"", operand + b" = ", operand]
        if BODY.match(after):
            return [*(head[: head.index(b"(")] for head in self.lexicon.heads if b"(" in head), operand]
        return [operand]

    def _heads(self, closers: Sequence[bytes], *, outside: bool) -> list[bytes]:
        """Texts that may precede the innermost block, the likeliest first."""
        place = len(closers) - 1 - closers[::-1].index(b"}")
        likely = self._likely(len(closers) - 1 - place, outside=outside and not place)
        return list(dict.fromkeys([likely, b"", *self.lexicon.heads]))

    def _likely(self, index: int, *, outside: bool = False) -> bytes:
        """The likeliest head of a block, by the text after its closer and its place; "" if neither tells."""
        heads, closer = self.lexicon.heads, self.unmatched[index] if index < len(self.unmatched) else None
        outermost = closer.leads and closer.column == 0 if closer is not None else outside
        if closer is not None and outermost and METHOD.search(self.text, 0, self._start + closer.end):
            return b"impl x "
        after = self._after(index)
        begin = next((begin for pattern, begin in HEAD_OF.items() if pattern.match(after)), None)
        found = next((head for head in heads if begin and head.startswith(begin)), b"")
        return found or (heads[0] if outermost and heads else b"")

    def _after(self, index: int) -> bytes:
        """The text after a closer that has no opener."""
        return self.text[self._start + self.unmatched[index].end :] if index < len(self.unmatched) else b""

    @cached_property
    def _clauses(self) -> list[bytes]:
        """Texts with braces that may precede a suffix that begins with ``else``, ``catch`` or ``finally``."""
        clause = None if self.inside or self.lexicon.columns else CLAUSE.match(self.text)
        begin = CLAUSE_OF[clause[1]] if clause else b"\n"
        return [b"", *(head + b"{}" for head in self.lexicon.heads if head.startswith(begin))]

    @cached_property
    def _continues(self) -> bool:
        """Whether the suffix continues an expression, where a line break means nothing."""
        return bool((CONTINUES_IN_BRACKETS if self.lexicon.columns else CONTINUES).match(self.text))


@lru_cache(maxsize=MAX_KEPT)
def right_side(text: bytes, lexicon: Lexicon, before: bytes, *, to_the_end: bool) -> RightSide:
    """Return the text after a gap; cached, since every search needs the same one whatever the earlier gaps hold."""
    return RightSide(text, lexicon, before, to_the_end=to_the_end)
