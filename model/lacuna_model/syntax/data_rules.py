"""Where JSON and HTML have what their grammars take everywhere."""

from tree_sitter import Node

from lacuna_model.syntax.fits import COMMENTS, Fits, never, said
from lacuna_model.syntax.rules import Rules, kinds

_JSON_PLACES = """
(document (_) @root)
(string) @line
"""
_HTML_PLACES = """
(element (start_tag) @opening)
(erroneous_end_tag) @closing
"""
# Elements that need no end, and those that cannot have one.
_OPEN_ENDED = kinds(
    "html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th "
    "area base br col embed hr img input link meta param source track wbr"
)


def _first_value(node: Node) -> bool:
    """The one value of a text, with comments around it."""
    before = node.prev_named_sibling
    while before is not None and before.type in COMMENTS:
        before = before.prev_named_sibling
    return node.type in COMMENTS or before is None


def _ended(opening: Node) -> bool:
    """The start of an element that has an end, or needs none."""
    element, name = opening.parent, opening.named_children[0].text or b""
    ended = element is not None and element.children[-1].type == "end_tag"
    return ended or name.decode(errors="replace").lower() in _OPEN_ENDED


_JSON_FITS: dict[str, Fits] = {"root": _first_value, "line": said(rb"[^\x00-\x1f]*")}
_HTML_FITS: dict[str, Fits] = {"opening": _ended, "closing": never}

DATA_RULES = (
    Rules("json", _JSON_PLACES, _JSON_FITS, firm=frozenset(_JSON_FITS)),
    Rules("html", _HTML_PLACES, _HTML_FITS, firm=frozenset(_HTML_FITS)),
)
