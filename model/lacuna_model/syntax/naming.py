"""What the text behind a gap tells of the heads that its completions make up: names, classes to extend, ``async``."""

import re
from collections.abc import Mapping

from lacuna_model.syntax.right_side import RightSide

CONSTRUCTOR = re.compile(
    rb"\n[ \t]+(?:(?:public|protected|private) )?(?P<name>[A-Z]\w*)\([^;{}()]*\)[^;{}()]*\{"
    rb"|\b(?:class|enum|interface|record) [A-Z]\w*[^;]*?\{"
)
CONSTRUCTION = re.compile(rb"\bsuper\(")
AWAITED = re.compile(rb"\bawait\b")
MADE_UP = re.compile(rb"(?<!async )\b(?:class x\b(?! extends)|function x\()")


def heads_behind(right: RightSide) -> Mapping[bytes, bytes]:
    """How some heads must begin that a completion makes up, by how they would.

    In Java a constructor has the name of its class, in JavaScript it may call that of the class which this one extends.
    """
    lexicon, heads = right.lexicon, {}
    if lexicon.outer.startswith(b"class "):
        found = CONSTRUCTOR.search(right.text)
        heads[b"class x"] = b"class " + found.group("name") if found and found.group("name") else b"class x"
    elif b"function x() " in lexicon.heads:
        heads[b"class x"] = b"class x extends x" if CONSTRUCTION.search(right.text) else b"class x"
        heads[b"function x("] = b"async function x(" if AWAITED.search(right.text) else b"function x("
    return heads


def with_heads(text: bytes, heads: Mapping[bytes, bytes]) -> bytes:
    """A completion whose heads begin so."""
    return MADE_UP.sub(lambda made_up: heads.get(made_up.group(), made_up.group()), text) if heads else text
