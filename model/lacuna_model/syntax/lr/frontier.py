"""Which tokens the parser could read next at the frontier: for ranking alternatives, not for vetoes.

tree-sitter's LookaheadIterator lists the terminals of a parse state with a precision of 0.96 to 0.98. Tokens are not
terminals: a token may hold several terminals, a part of one, or the rest of the preceding word. A token fits if its
first terminal could begin at the frontier.
"""

import re
from functools import lru_cache

from tree_sitter import Language, Node, Tree

WORD = re.compile(rb"[\w$\x80-\xff]+")
NAMES = re.compile(r"identifier|name|word|constant|variable|plain_value|content|text|property|symbol")
NUMBERS = re.compile(r"integer|number|float|literal|plain_value|word|content|text")
STRINGS = re.compile(r"string|char|quote|literal|content|text")

# Terminals inside a string, where any text is allowed.
INSIDE = frozenset({"string_fragment", "string_content", "character", "regex_pattern", "escape_sequence"})


@lru_cache(maxsize=4096)
def terminals_of(grammar: Language, state: int) -> frozenset[str]:
    """Return the names of the symbols that are valid in a parse state; empty for an unknown state."""
    iterator = grammar.lookahead_iterator(state)
    return frozenset(iterator.names()) if iterator is not None else frozenset()


class Frontier:
    """The terminals that may follow ``text[:offset]`` in a parsed text."""

    def __init__(self, grammar: Language, tree: Tree, text: bytes, offset: int) -> None:
        self._before = text[:offset][-1:]
        leaf = _leaf_before(tree, text, offset)
        # Any token fits inside a leaf that extends past the frontier (a string or a comment), and on a new line: it may
        # begin a statement, which the state of the last leaf does not list.
        cut = leaf is None or leaf.is_error or leaf.end_byte > offset or b"\n" in text[leaf.end_byte : offset]
        self._terminals = frozenset() if cut or leaf is None else terminals_of(grammar, leaf.next_parse_state)

    def fits(self, piece: bytes) -> bool:
        """Whether a token's bytes could continue the text here."""
        text = piece.lstrip(b" \t")
        if not self._terminals or not text or text[:1] in b"\r\n#/" or INSIDE & self._terminals:
            return True
        word = WORD.match(text)
        if word is None:
            return any(_overlap(text, name.encode()) for name in self._terminals) or self._fits_string(text)
        if text is piece and WORD.match(self._before):
            return True  # merges with the preceding word
        return self._fits_word(word.group(), whole=word.end() < len(text))

    def _fits_word(self, word: bytes, *, whole: bool) -> bool:
        kinds = NUMBERS if word[:1].isdigit() else NAMES
        text = word.decode(errors="replace")
        return any(
            kinds.search(name) or name == text or (not whole and name.startswith(text)) for name in self._terminals
        )

    def _fits_string(self, text: bytes) -> bool:
        return text[:1] in b"\"'`" and any(STRINGS.search(name) for name in self._terminals)


def _leaf_before(tree: Tree, text: bytes, offset: int) -> Node | None:
    last = len(text[:offset].rstrip()) - 1
    return tree.root_node.descendant_for_byte_range(last, last + 1) if last >= 0 else None


def _overlap(text: bytes, terminal: bytes) -> bool:
    """Whether a text and a literal terminal agree over the length of the shorter one."""
    shared = min(len(text), len(terminal))
    return text[:shared] == terminal[:shared]
