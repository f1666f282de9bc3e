"""Where JSON, YAML and HTML have what their grammars take everywhere."""

import re

from tree_sitter import Node

from lacuna_model.syntax.fits import COMMENTS, Fits, never, said
from lacuna_model.syntax.rules import Rules, kinds

_JSON_PLACES = """
(document (_) @root)
(string) @line
"""
_HTML_PLACES = """
(element . (start_tag)) @element
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


def _ended(element: Node) -> bool:
    """An element that has an end, or needs none."""
    name = element.children[0].named_children[0].text or b""
    return element.children[-1].type == "end_tag" or name.decode(errors="replace").lower() in _OPEN_ENDED


def _anchored(alias: Node) -> bool:
    """An alias of an anchor that stands above it."""
    root, name = alias, re.escape((alias.text or b"")[1:])
    while root.parent is not None:
        root = root.parent
    return (
        re.search(rb"&%b(?![^\s,\[\]{}])" % name, (root.text or b"")[: alias.start_byte - root.start_byte]) is not None
    )


_JSON_FITS: dict[str, Fits] = {"root": _first_value, "line": said(rb"[^\x00-\x1f]*")}
_HTML_FITS: dict[str, Fits] = {"element": _ended, "closing": never}

DATA_RULES = (
    Rules("json", _JSON_PLACES, _JSON_FITS, firm=frozenset(_JSON_FITS)),
    Rules("html", _HTML_PLACES, _HTML_FITS, firm=frozenset(_HTML_FITS), blamed={"element": 0}),
    Rules("yaml", "(alias) @alias", {"alias": _anchored}, firm=frozenset({"alias"})),
)
