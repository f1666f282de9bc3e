"""What the text behind a gap tells of the class that its missing head begins: its name, and that it extends another."""

import re

from lacuna_model.syntax.right_side import RightSide

CONSTRUCTOR = re.compile(
    rb"\n[ \t]+(?:(?:public|protected|private) )?(?P<name>[A-Z]\w*)\([^;{}()]*\)[^;{}()]*\{"
    rb"|\b(?:class|enum|interface|record) [A-Z]\w*[^;]*?\{"
)
CONSTRUCTION = re.compile(rb"\bsuper\(")


def class_head(right: RightSide) -> bytes:
    """How the head of such a class begins.

    In Java a constructor has its name, in JavaScript it may call that of the class which this one extends.
    """
    lexicon = right.lexicon
    plain = b"class " + lexicon.operand
    if lexicon.outer.startswith(b"class "):
        found = CONSTRUCTOR.search(right.text)
        return b"class " + found.group("name") if found and found.group("name") else plain
    extends = b"function x() " in lexicon.heads and CONSTRUCTION.search(right.text)
    return plain + b" extends " + lexicon.operand if extends else plain


def with_head(text: bytes, head: bytes) -> bytes:
    """A completion whose classes begin so."""
    return re.sub(rb"\bclass x\b(?! extends)", head, text) if b"class x" in text else text
