"""Rust."""

from tree_sitter import Node

from lacuna_model.languages.language import CLASH, Declarations, Language, Lexicon, Role, Rules, kinds, texts
from lacuna_model.languages.predicates import Predicate, before_comments, jump, never, one_of

_CHARACTER = rb"'(?:\\[^'\n]{1,10}|\\'|[^'\\\n]{1,4})'"
_RUST_PLACES = """
(source_file (expression_statement (_) @item))
(source_file [(let_declaration) (function_signature_item)] @stray)
(source_file (function_item parameters: (parameters (self_parameter) @stray)))
(block [(function_signature_item) (function_item parameters: (parameters (self_parameter)))] @stray)
(impl_item body: (declaration_list (function_signature_item) @stray))
(break_expression) @jump
(continue_expression) @jump
"""
_RUST_FITS: dict[str, Predicate] = {
    "stray": never,
    "item": one_of("macro_invocation"),
    "jump": jump(
        kinds("loop_expression while_expression for_expression"), kinds("function_item closure_expression async_block")
    ),
}
_RUST_WORDS = (
    "as break const continue else enum extern false fn for if impl in let loop match mod move mut pub ref return "
    "static struct trait true type unsafe use where while async await dyn"
)
_RUST_QUOTING = kinds("token_tree token_tree_pattern token_repetition token_repetition_pattern attribute lifetime")


def _weight(item: Node, _child: Node) -> int:
    """The weight of an item, which never clashes after an attribute: that may choose between two items."""
    before = before_comments(item)
    attributes = [before, *item.children]
    return -CLASH if any(one is not None and one.type == "attribute_item" for one in attributes) else CLASH


_RUST_ROLES = {
    "function_item const_item static_item": Role(weight=_weight),
    "struct_item enum_item union_item trait_item type_item mod_item": Role(space="type", weight=_weight),
    "field_declaration enum_variant": Role(space="member", weight=_weight),
    "field_initializer": Role("field", "key", weight=_weight),
    "shorthand_field_initializer": Role("", "key"),
    "parameter": Role("pattern", "parameter", weight=_weight),
}
_RUST_SCOPES = kinds(
    "source_file declaration_list block function_item function_signature_item closure_expression "
    "field_declaration_list enum_variant_list field_initializer_list function_type"
)

RUST = Language(
    "rust",
    (".rs",),
    "tree_sitter_rust",
    aliases=("rs",),
    lexicon=Lexicon(
        long_strings=True,
        quotes=(b'"',),
        atoms=(_CHARACTER,),
        raw=((b'r#"', b'"#'),),
        heads=texts("fn x() ||struct x |impl x |match x |enum x |x => |if x |x = x |x: x "),
    ),
    rules=Rules(_RUST_PLACES, _RUST_FITS, _RUST_WORDS, _RUST_QUOTING),
    declarations=Declarations("identifier field_identifier type_identifier", _RUST_ROLES, _RUST_SCOPES),
    definitions=("rust",),
)
