"""The text behind a gap, as far as a completion has to lead over to it."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache

from lacuna_model.syntax.blocks import coming_lines, needs
from lacuna_model.syntax.languages import Lexicon
from lacuna_model.syntax.literals import carried_quote, open_comment, open_quote
from lacuna_model.syntax.scan import FAR, TOP_LEVEL, UNKNOWN, Scan, scan, scan_brackets, string_end

WINDOW = 4000
MOST_KEPT = 16
STATEMENT = re.compile(
    rb"\s*(?:@|(?:async|await|assert|break|class|continue|def|del|for|from|global|if|import|nonlocal|pass|raise|return|"
    rb"try|while|with|yield)\b)"
)
PROSE = re.compile(rb" ?[\w'`,.()-]+ [a-z'`-]+ [a-z'`,.-]+(?: [a-z]|\Z)")
BINARY = re.compile(rb"\s*(?:[-+*/%&|^<>=!?]|(?:and|or|in|is|not in|if|instanceof|as)\b)")
CHOICE = re.compile(rb"\s*:(?!:)")
CHOICE_OF_WORDS = re.compile(rb"\s*(?::(?!:)|else\b)")
ARROW = re.compile(rb"\s*(?::[^\n=]*)?=>")
BODY = re.compile(rb"\s*(?:\{|:|->|(?:throws|where|const|override|noexcept)\b|[\w*.\[\]]+ \{|\([^)\n]*\) \{)")
HEAD_OF = {
    rb"\s*(?:catch|finally)\b": b"try",
    rb"\s*else\b": b"if",
    rb"\s*while\b": b"do ",
    rb"\s*from\s*[\"']": b"import ",
    rb"[ \t]*//[ \t]*(?:end )?(?:anonymous |unnamed )?namespace\b": b"namespace x ",
    rb"\s*(?:(?://[^\n]*\n|#\[[^\]\n]*\])\s*)*(?:pub )?fn\b": b"fn x() ",
    rb"\{\{": b"x := []struct ",
    rb"\{": b"x: struct ",
    rb",[ \t]*\n\s*(?:\w+(?:: |,)|\})": b"x: x ",
    rb",?\s*(?://[^\n]*\n\s*)*[^\n;{}]+ => ": b"x => ",
}
MOST_LISTED = 8
NEXT = re.compile(rb",[ \t]*(?:\{|\r?\n)")
METHOD = re.compile(rb"\n[ \t]+(?:pub )?fn \w+[^\n;{]*\((?:\s*&)?(?:mut )?self\b")
FIELD = re.compile(rb"\s*(?://[^\n]*\n\s*)*(?!default\b)\w+: [^\n]*\n")
STATEMENT_LINE = re.compile(
    rb"[^\S\n]*\n\s*(?:[\w.]+(?:, [\w.]+)* :?= |return\b|(?:if|for|while|switch)\b[^\n:]*\{[ \t]*\n)"
)
# A line that stands in no bracket, where blocks are columns.
OUTSIDE = re.compile(
    rb"\n[ \t]*(?:@|(?:return|assert|raise|import|def|class|with|try|pass|break|continue|del|while|elif|except)\b|"
    rb"(?:if|for|else|async)\b[^\n]*:[ \t]*\n|[\w.]+ [-+*/|&]?= )"
)
# A line that names a module and nothing else.
IMPORTED = re.compile(rb"[^\S\n]*\n\s*(?:[\w.]+ )?\"[^\"\n]+\"[ \t]*\r?\n")
SIGNATURE_END = re.compile(rb"\s*(?:->[^\n]*)?:")
CAUSE = re.compile(rb"\s*from\b")
# Code that goes on with what stands in front of it, be that on the line above.
CONTINUES = re.compile(
    rb"\s*(?:\?\.|\.(?=[\w(])|\?(?=\s)|&&|\|\||[-+*%^|](?=\s)|/(?=\s)|[=!]=|<<|>>|(?:as|instanceof)\b)"
)
CONTINUES_IN_BRACKETS = re.compile(CONTINUES.pattern + rb"|\s*(?:and|or|in|is|if|else|for)\b")
# A value with a name in quotes, which only a macro takes where these are names in code.
KEYED = re.compile(rb"[{,\n]\s*\"[^\"\n]*\": ")
# What stands behind a condition in its line: a jump, a call, an assignment.
ON_CONDITION = re.compile(rb"[ \t]+(?:(?:return|throw|break|continue|goto)\b|\w+(?:(?:\.|->)\w+)*(?:\(| [-+*/|&]?= ))")
CLAUSE_OF = {b"else": b"if", b"catch": b"try", b"finally": b"try"}
CLAUSE = re.compile(rb"\s*(else|catch|finally)\b")
CASE = re.compile(rb"\s*(?:case|default)\b")


class RightSide:
    """What stands behind a gap: the rest of its line, and which brackets and strings it closes.

    ``unmatched`` are its closers without an opener, innermost first, ``stack`` its openers without a closer, outermost
    first, and ``levels`` the columns of the lines between them (see ``Scan``); ``inside`` is the quote of a string that
    the text begins in, given what the gap begins in (``before``); ``header`` whether the line is the header of an
    indented block; ``follows_choice`` whether the text goes on with the second half of a choice, as in ``x ? y : z``,
    ``cases`` whether it does with the cases of a switch, and ``statements`` whether one ends behind the last of its
    closers; ``after_statement`` is the text from where the statement closes its last bracket, ``coming`` the lines
    behind that and ``needs`` the blocks these must stand in. ``whole`` says whether all is seen that could close a
    bracket, which it is not in front of another gap.
    """

    def __init__(self, text: bytes, lexicon: Lexicon, before: bytes = b"", *, to_the_end: bool = True) -> None:
        stop = TOP_LEVEL.search(text, 0, WINDOW) if lexicon.columns else None
        window = text[: stop.start() if stop else WINDOW]
        self.lexicon = lexicon
        self._openings: dict[tuple[tuple[bytes, ...], bool], list[bytes]] = {}
        self.text = text
        self.to_the_end = to_the_end
        self.rest = text.split(b"\n", 1)[0]
        self._before = before
        if to_the_end:
            self.inside = open_comment(text, lexicon) or open_quote(text, lexicon)
        else:
            self.inside = carried_quote(text, before, lexicon)
        start = string_end(window, self.inside) or 0 if self.inside else 0
        clean = window[start:]
        state = scan(clean, lexicon, Scan(column=UNKNOWN))
        counted = state
        if len(window) < len(text) and not lexicon.columns:
            counted = scan_brackets(text[start:FAR], lexicon)
        outside = lexicon.columns and OUTSIDE.search(clean) is not None
        self.whole = stop is not None or outside or (to_the_end and len(text) <= FAR)
        self.unmatched = counted.unmatched
        self.stack = counted.stack
        self.lowest = state.lowest if len(state.unmatched) == len(counted.unmatched) else UNKNOWN
        self.cases = state.cases
        self.statements = state.statements
        self._start = start
        seen = state.levels[: len(counted.levels)]
        self.levels = seen + (UNKNOWN,) * (len(counted.levels) - len(seen))
        self.after_statement = (
            text[start + (state.unmatched[-1].end if state.unmatched else 0) :] if lexicon.columns else text
        )
        line = self.after_statement.split(b"\n", 1)[0]
        code = scan(line, lexicon)
        self.header = lexicon.columns and code.last == b":" and not code.stack
        self.blank = not self.rest.strip()
        self.follows_choice = bool((CHOICE_OF_WORDS if lexicon.columns else CHOICE).match(text))
        self.coming = coming_lines(self.after_statement)
        self.needs = needs(window)

    def without(self, start: int, newline: bytes = b"") -> "RightSide":
        """The same side, were its first ``start`` bytes not there, or ``newline`` in their place."""
        return RightSide(newline + self.text[start:], self.lexicon, self._before, to_the_end=self.to_the_end)

    @property
    def statement(self) -> bool:
        """Whether the rest of the line begins as only a statement does."""
        return bool(STATEMENT.match(self.rest))

    @cached_property
    def begins_statement(self) -> bool:
        """Whether the next line is one that stands in a block only."""
        return self.blank and not self.inside and self.lexicon.braces and bool(STATEMENT_LINE.match(self.text))

    @cached_property
    def fields(self) -> bool:
        """Whether the text begins with a field of a value, named."""
        return not self.inside and bool(self.lexicon.field) and FIELD.match(self.text) is not None

    @cached_property
    def listed(self) -> frozenset[int]:
        """Which of its first closers without an opener end a value that another one follows."""
        closers = enumerate(self.unmatched[:MOST_LISTED])
        return frozenset(index for index, closer in closers if closer.closer == b"}" and NEXT.match(self.behind(index)))

    @property
    def prose(self) -> bool:
        """Whether the rest of the line reads like the end of a comment."""
        return bool(PROSE.match(self.rest)) and not self.inside and not self.statement

    @property
    def margin(self) -> int:
        """How many spaces the rest of the line begins with, before a statement that can begin there."""
        blank = len(self.rest) - len(self.rest.lstrip(b" "))
        # An indented "if" begins a statement; one blank in front of it is what a conditional expression has.
        operator = BINARY.match(self.rest) and not (blank > 1 and self.statement)
        return blank if not self.blank and not self.inside and not operator else 0

    @property
    def starts_operand(self) -> bool:
        """Whether the rest of the line begins with an operand of its own."""
        return bool(re.match(rb"\s*[\w\"'\x80-\xff]", self.rest)) and not BINARY.match(self.rest)

    def opening(
        self, openers: Sequence[bytes], caller: bytes | None = None, head: bytes = b"", *, outside: bool = False
    ) -> bytes:
        """The brackets and the quote that the text behind the gap closes.

        ``caller`` stands before the outermost parenthesis, ``head`` before the innermost brace; ``outside`` of all
        brackets the outermost brace needs a head too, whatever closes it.
        """
        operand = self.lexicon.operand
        last_brace = max((place for place, mark in enumerate(openers) if mark == b"{"), default=-1)
        parts = []
        for place, mark in enumerate(openers):
            if mark == b"(":
                parts.append(operand if caller is None else caller)
                caller = None
            elif mark == b"{" and place == last_brace:
                parts.append(head)
            elif mark == b"{" and self.lexicon.field and head.startswith(self.lexicon.field):
                parts.append(self.lexicon.record)
            elif mark == b"{" and place and openers[place - 1] == b"(":
                parts.append(self.lexicon.function)  # of an argument that goes on with calls
            elif mark == b"{" and (likely := self._likely(len(openers) - 1 - place, outside=outside and not place)):
                parts.append(next((one for one in self.lexicon.heads if one.startswith(likely)), b""))
            parts.append(mark + (b"\n" if len(mark) > 1 else b""))
        if self.cases and openers[-1:] == [b"{"] and not CASE.match(self.text):
            parts.append(b"case x:")
        if openers and not self.inside and (self.rest[:1] == b"," or BINARY.match(self.rest) or self._continues):
            parts.append(operand)
        else:
            parts.append(self.clause_head)
        return b"".join(parts) + self.lexicon.opener_of(self.inside)

    def openings(self, openers: Sequence[bytes], *, outside: bool = False) -> list[bytes]:
        """The same with each caller and each head that there may be, likeliest first; found once."""
        key = tuple(openers), outside
        if key not in self._openings:
            self._openings[key] = self._all_openings(openers, outside=outside)
        return self._openings[key]

    def _all_openings(self, openers: Sequence[bytes], *, outside: bool) -> list[bytes]:
        if not openers:
            return [head + self.lexicon.opener_of(self.inside) for head in dict.fromkeys([b"", self.clause_head])]
        callers: list[bytes | None] = list(self._callers(openers)) if b"(" in openers else [None]
        heads = self._heads(openers) if b"{" in openers else [b""]
        found = [self.opening(openers, caller, head, outside=outside) for head in heads for caller in callers]
        if self.lexicon.record and openers[0] == b"{" and len(openers) - 2 in self.listed:  # of a list of values
            found.insert(1, b"x = " + self.lexicon.record + found[0])
        return found

    def _callers(self, openers: Sequence[bytes]) -> list[bytes]:
        """What may stand in front of a parenthesis, by what follows where it is closed: parameters or arguments."""
        operand = self.lexicon.operand
        behind = self.behind(len(openers) - 1 - openers.index(b"("))
        if self.lexicon.columns:
            if SIGNATURE_END.match(behind):
                return [b"def " + operand, b"if " + operand, b"class " + operand]
            return [b"raise " + operand] if CAUSE.match(behind) else [operand]
        if ARROW.match(behind):
            return [b"", operand + b" = ", operand]
        if self.lexicon.groups and self.blank and not behind.split(b"\n", 1)[0].strip():
            groups = self.lexicon.groups
            return [*groups, operand] if IMPORTED.match(self.text) else [operand, *groups]
        if self.lexicon.macro and KEYED.search(self.text, 0, self._start + self._end(openers)):
            return [self.lexicon.macro, operand]
        if b"if (x) " in self.lexicon.heads and ON_CONDITION.match(behind):
            return [b"if ", operand]
        if BODY.match(behind):
            return [*(head[: head.index(b"(")] for head in self.lexicon.heads if b"(" in head), operand]
        return [operand]

    def _heads(self, openers: Sequence[bytes]) -> list[bytes]:
        """What may stand in front of the innermost brace."""
        heads = list(self.lexicon.heads)
        place = len(openers) - 1 - openers[::-1].index(b"{")
        likely = self._likely(len(openers) - 1 - place)
        if likely or self.cases:
            heads.sort(key=lambda head: not head.startswith(likely or b"switch"))
        within = place and openers[place - 1] == b"("
        if within and self.lexicon.function and not self.fields:
            heads.insert(0, self.lexicon.function)
        if self.lexicon.record and self.fields and 0 not in self.listed:
            heads.insert(0, self.lexicon.record if within else b"x = " + self.lexicon.record)
        return heads

    def _likely(self, index: int, *, outside: bool = False) -> bytes:
        """How the head of a block begins, by what follows where it is closed, and where; "" where nothing tells."""
        behind = self.behind(index)
        closer = self.unmatched[index] if index < len(self.unmatched) else None
        outermost = closer.leads and closer.column == 0 if closer is not None else outside
        if closer is not None and outermost and METHOD.search(self.text, 0, self._start + closer.end):
            return b"impl x "
        found = next((head for pattern, head in HEAD_OF.items() if re.match(pattern, behind)), b"")
        return found or (self.lexicon.outer if outermost else b"")

    def behind(self, index: int) -> bytes:
        """What follows a closer that has no opener."""
        return self.text[self._start + self.unmatched[index].end :] if index < len(self.unmatched) else b""

    def _end(self, openers: Sequence[bytes]) -> int:
        """Where the text closes the outermost of its openers."""
        return self.unmatched[min(len(openers), len(self.unmatched)) - 1].end if self.unmatched else 0

    @cached_property
    def _continues(self) -> bool:
        """Whether the text goes on with an expression, where a line break means nothing."""
        pattern = CONTINUES_IN_BRACKETS if self.lexicon.columns else CONTINUES
        return bool(pattern.match(self.text))

    @cached_property
    def clause_head(self) -> bytes:
        """A whole block that the clause may belong to that the text begins with; "" where it begins with none."""
        clause = CLAUSE.match(self.text)
        if clause is None or self.inside or not self.lexicon.braces:
            return b""
        return next((head + b"{}" for head in self.lexicon.heads if head.startswith(CLAUSE_OF[clause[1]])), b"")


@lru_cache(maxsize=MOST_KEPT)
def right_side(text: bytes, lexicon: Lexicon, before: bytes, *, to_the_end: bool) -> RightSide:
    """What stands behind a gap: search after search looks at the same, whatever the gaps in front hold."""
    return RightSide(text, lexicon, before, to_the_end=to_the_end)
