"""The text in front of a gap, as far as it tells what must stand at the beginning of a fill."""

import re

from lacuna_model.syntax.blocks import Needs
from lacuna_model.syntax.languages import Lexicon

REACH = 500
DECORATED = re.compile(rb"(?:\A|\n)([ \t]*)@[^\n]*\n([ \t]*)\Z")
DEFINITION = Needs(b"def x():", b"def x():")
# A line that says something of the declaration below it.
ANNOTATED = re.compile(rb"(?:\A|\n)[ \t]*(?:@\w|#\[)[^\n;{}]*\n\s*\Z")
BODILESS = re.compile(rb"\b(?:(?:if|for|while)\b[^\n;{}]*\)|else)\s*\n\s*\Z")
UNOPENED = re.compile(rb"\n[ \t]*(?:(?:\} *)?(?:if|for|while|match|else|fn|func|impl)\b[^\n;{}]*|where[ \t]*)\n\s*\Z")
OPEN_TYPES = re.compile(rb"\w<[ \t]*\r?\n(?:[^\n;(){}]*\n)*\s*\Z")
CHOICE_HEAD = re.compile(rb"\b(switch|match|macro_rules)\b[^\n;]*\{\s*(?://[^\n]*\n\s*)*\Z")
CASES = {b"switch": [b"case x:"], b"match": [b"x => ", b"x => x,"], b"macro_rules": [b"() => "]}
# The colon behind the parameters of a constructor in C++, and what it sets up.
SETTING_UP = re.compile(rb"\)\s*:\s*(?:(?:[^\s;{},][^\n;{},]*)?,\s*)*\Z")
FIELDS = re.compile(rb"\n\s*[\w\"']+: [^\n]*,[ \t]*\n(?:[^\n]*\n){0,4}?\s*\Z")
# The line above ends where an expression goes on.
UNFINISHED = re.compile(rb"[\w)\]] ?(?:[-+*/%&|^<>=!]?=|[-+*/%^?&|]|&&|\|\|) *(?://[^\n]*)?\r?\n\s*\Z")
# The parameters of a closure in Rust, up to the bar that ends them.
CLOSURE = re.compile(rb"[(=,]\s*(?:move )?\|(?:[^|(){};]*,)?\s*\Z")


def beginnings(text: bytes, lexicon: Lexicon) -> list[bytes]:
    """What a new line must begin with, given what stands in front of it: a decorator, say, or a switch."""
    if lexicon.columns and (decorator := DECORATED.search(text)):
        indent, line = decorator.group(1), decorator.group(2)
        return [indent.removeprefix(line) + DEFINITION.block + b" pass"]
    if not lexicon.braces:
        return []
    if choice := CHOICE_HEAD.search(text):
        return CASES[choice.group(1)]
    if ANNOTATED.search(text):
        return [link.lstrip() for link in lexicon.links if link.endswith(b"() {}")]
    if lexicon.conditionals and SETTING_UP.search(text):
        return [b"x() {}"]
    if OPEN_TYPES.search(text):
        return [lexicon.operand + b">", lexicon.operand + b">()", lexicon.operand]
    if lexicon.conditionals and text.endswith((b"\\\n", b"\\\r\n")):
        return [lexicon.operand + b" \\"]
    bodies = [lexicon.terminator] if lexicon.terminator and BODILESS.search(text) else []
    return [*bodies, b"{}"] if UNOPENED.search(text) else bodies
