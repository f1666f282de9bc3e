"""HTML, CSS and PHP."""

from tree_sitter import Node

from lacuna_model.languages.language import TYPE, Declarations, Language, Lexicon, Role, Rules, kinds, texts
from lacuna_model.languages.predicates import Predicate, never

_HTML_PLACES = """
(element . (start_tag)) @element
(erroneous_end_tag) @closing
"""
# Elements that need no end tag, and those that cannot have one.
_OPEN_ENDED = kinds(
    "html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th "
    "area base br col embed hr img input link meta param source track wbr"
)


def _ended(element: Node) -> bool:
    """Whether an element has an end tag, or needs none."""
    name = element.children[0].named_children[0].text or b""
    return element.children[-1].type == "end_tag" or name.decode(errors="replace").lower() in _OPEN_ENDED


_HTML_FITS: dict[str, Predicate] = {"element": _ended, "closing": never}

HTML = Language(
    "html",
    (".html", ".htm"),
    "tree_sitter_html",
    lexicon=Lexicon(
        line_comment=(),
        block_comment=((b"<!--", b"-->"),),
        brackets=(b"<>",),
        body=b"",
        terminator=b"",
        operand=b"x",
        tags=True,
    ),
    rules=Rules(_HTML_PLACES, _HTML_FITS, firm=frozenset(_HTML_FITS), blamed={"element": 0}),
    declarations=Declarations(
        "attribute_name", {"attribute": Role("", "attribute")}, kinds("start_tag self_closing_tag")
    ),
)


CSS = Language(
    "css",
    (".css",),
    "tree_sitter_css",
    lexicon=Lexicon(heads=(b"x ", b"@media x "), line_comment=(), operand=b"x", statement=b"x:x;"),
)


_PHP_ROLES = {
    "function_definition": Role(space="function"),
    "method_declaration": Role(space="method"),
    "property_element": Role(space="member"),
    "const_element": Role("", "constant"),
    "simple_parameter variadic_parameter": Role(),
    "class_declaration interface_declaration trait_declaration enum_declaration": TYPE,
}
_PHP_SCOPES = kinds(
    "program compound_statement declaration_list enum_declaration_list function_definition method_declaration "
    "anonymous_function arrow_function namespace_definition property_hook"
)

PHP = Language(
    "php",
    (".php",),
    "tree_sitter_php",
    "language_php",
    lexicon=Lexicon(
        heads=texts("|function x() |class x |switch ($x) |if ($x) "), line_comment=(b"//", b"#"), operand=b"$x"
    ),
    declarations=Declarations("name variable_name", _PHP_ROLES, _PHP_SCOPES),
    definitions=("php",),
)
