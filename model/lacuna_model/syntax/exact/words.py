"""The terminals of a text, taken from the leaves of its tree."""

from tree_sitter import Node

from lacuna_model.languages.language import Language
from lacuna_model.syntax.lr.insertions import WORD, Insertions
from lacuna_model.syntax.lr.parse_table import END, Terminal, leaves

REACH = 1500  # how many terminals of the suffix are read at most


class Words:
    """Turns leaves of a language's trees into terminals: a keyword may also be a name, and a mark several terminals."""

    def __init__(self, language: Language, insertions: Insertions) -> None:
        self.insertions = insertions
        self._name = language.grammar().id_for_node_kind("identifier", True)

    def terminal(self, text: bytes, leaf: Node, on_new_line: bool) -> Terminal:
        """Return the terminal of a leaf of a text; ``on_new_line`` tells that a line end is before it."""
        word = text[leaf.start_byte : leaf.end_byte]
        alike = self.insertions.spellings.get(word, ())
        name = ((self._name,),) if self._name is not None and WORD.match(word) else ()
        unsure = leaf.parent is not None and leaf.parent.is_error
        return Terminal(word, (tuple(dict.fromkeys((*alike, leaf.grammar_id))), *name), on_new_line, unsure)

    def suffix(self, text: bytes, root: Node, begin: int, *, to_the_end: bool) -> list[Terminal] | None:
        """Return the terminals of a text from an offset on; None if the offset is inside one.

        A line end is no terminal of its own here, since it depends on the fill whether it is one.
        """
        found: list[Terminal] = []
        leaf = root.descendant_for_byte_range(max(begin - 1, 0), begin)
        inside = leaf is not None and not leaf.child_count and leaf.start_byte < begin < leaf.end_byte
        if leaf is not None and inside and not leaf.is_extra:  # a comment is no terminal
            return None
        end, is_new = begin, False
        for leaf in leaves(root, begin):
            is_new = is_new or b"\n" in text[end : leaf.start_byte]
            end = leaf.end_byte
            if text[leaf.start_byte : end].isspace():
                is_new = is_new or b"\n" in text[leaf.start_byte : end]
                continue
            found.append(self.terminal(text, leaf, is_new or text[leaf.start_byte : end] == b"}"))
            is_new = False
            if len(found) == REACH:
                return found
        return [*found, Terminal(b"", ((END,),), on_new_line=True)] if to_the_end else found
