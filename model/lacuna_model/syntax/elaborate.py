"""Openings in which each block has a head of its own: what is tried when the likeliest heads will not do."""

import re
from collections.abc import Sequence
from itertools import islice, product

from lacuna_model.syntax.languages import Lexicon
from lacuna_model.syntax.right_side import RightSide

MOST = 240
# How many heads are tried for each of so many blocks, the innermost; those around them have their likeliest.
HEADS_OF = (16, 12, 6, 4)
# What only the arm of a macro has, in Rust.
METAVARIABLE = re.compile(rb"\$(?:\w+\b|\()")
# An expression that goes on with a method or an operator, up to the block that it is the head of.
HEAD_ENDS = re.compile(rb"[^;{}]*?[\s)]\{[ \t]*\n\s*(?:(?://|#)[^\n]*\s+)*(?P<first>[^\n]*)")
# The end of the arguments of a type, which begin a line of their own.
TYPE_ENDS = re.compile(rb"[^;(){}]*\n>[ \t]*[;(,)]")
# A statement that is the first of two between which a condition decides.
ELSE_FOLLOWS = re.compile(rb"[^;{}]*;\s*else\b")
CASES = re.compile(rb"\n[ \t]*(?:case\b|default\b[^\n]*:)")


def elaborate(right: RightSide, openers: Sequence[bytes]) -> list[bytes]:
    """The brackets that the text behind a gap closes, with all heads that their blocks may have, likeliest first."""
    outer = max(len(openers) - len(HEADS_OF), 0)
    most = HEADS_OF[max(openers[outer:].count(b"{"), 1) - 1]
    choices = [_choices(right, openers, place)[: most if place >= outer else 1] for place in range(len(openers))]
    choices.append([lead + right.lexicon.opener_of(right.inside) for lead in dict.fromkeys([*_leads(right), b""])])
    ranked = sorted(product(*map(enumerate, choices)), key=lambda way: sum(rank for rank, _ in way))
    texts = (b"".join(text for _, text in way) for way in ranked)
    return list(islice(dict.fromkeys(texts), MOST))


def _leads(right: RightSide) -> list[bytes]:
    """What must stand directly in front of the text, be it a head that it goes on with or a type that it ends."""
    lexicon = right.lexicon
    if lexicon.union and TYPE_ENDS.match(right.text):
        return [lexicon.union + b"<", *right.leads]
    if ELSE_FOLLOWS.match(right.text):
        return [*(one for one in lexicon.heads if one.startswith(b"if (")), *right.leads]
    head = HEAD_ENDS.match(right.text)
    if head is None or right.leads != [lexicon.operand]:
        return right.leads
    words = (b"match", b"switch") if b"=>" in head.group("first") else (b"if", b"while", b"for")
    return [*(one.rstrip() for one in lexicon.heads if one.startswith(words) and b"(" not in one), *right.leads]


def _choices(right: RightSide, openers: Sequence[bytes], place: int) -> list[bytes]:
    """Ways to write one of the brackets, with what must stand in front of it and right behind it."""
    mark, lexicon = openers[place], right.lexicon
    parent = openers[place - 1] if place else b""
    if mark == b"(":
        return [lexicon.operand + mark, mark, *(group + mark for group in lexicon.groups)]
    if mark != b"{":
        return [mark if len(mark) == 1 else mark + b"\n"]
    if lexicon.macro and METAVARIABLE.search(right.text, 0, _end(right, len(openers) - 1 - place)):
        return [b"macro_rules! x " + mark] if place + 1 < len(openers) else [b"() => " + mark]
    if _holds_cases(right, len(openers) - 1 - place):
        switch = next((head for head in lexicon.heads if head.startswith(b"switch")), b"")
        case = b"case x:" if place + 1 < len(openers) else b""
        return [switch + mark + case, switch + mark + b"case x:"]
    called = right.behind(len(openers) - 1 - place).startswith(b"(")
    heads = dict.fromkeys([*([lexicon.function] * called), *_heads_within(parent, lexicon), *lexicon.heads])
    return [head + mark for head in heads]


def _heads_within(parent: bytes, lexicon: Lexicon) -> list[bytes]:
    """The heads of a block that stands right behind another bracket, first those of values."""
    if parent in (b"(", b"["):
        return [head for head in (lexicon.function, b"", lexicon.record) if head or parent == b"("]
    return [lexicon.loop] if lexicon.loop else []


def _end(right: RightSide, index: int) -> int:
    """Where one of its closers ends; of what is closed by no text, where the text does."""
    return len(right.text) - len(right.behind(index))


def _holds_cases(right: RightSide, index: int) -> bool:
    """Whether the text in front of one of its closers, and behind the one before, has cases."""
    return CASES.search(right.text, _end(right, index - 1) if index else 0, _end(right, index)) is not None
