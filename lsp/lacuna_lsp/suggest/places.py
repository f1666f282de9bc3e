"""Where nothing is suggested unasked: in comments, commit messages and strings, if the settings say so."""

from lacuna_lsp.documents.document import ClientDocument
from lacuna_server.wire.config import SuggestIn

# Language ids of texts that are no code.
MESSAGES = frozenset({"gitcommit", "git-commit", "git-rebase", "gitrebase", "hgcommit", "scminput"})
# A larger document is taken for code everywhere: parsing it would delay each key.
MOST_BYTES = 200_000


def why_off(where: SuggestIn, document: ClientDocument, offset: int) -> str:
    """Why nothing is suggested at a byte offset; "" where something is."""
    if where == "everywhere":
        return ""
    if document.languages & MESSAGES:
        return "suggestions are off in commit messages"
    kind = _kind(document, offset)
    if kind == "comment" or (kind == "string" and where == "code"):
        return f"suggestions are off in {kind}s"
    return ""


def _kind(document: ClientDocument, offset: int) -> str:
    """Whether a place is in a "comment" or a "string"; "" elsewhere, and where the language is not known."""
    from lacuna_model.languages.parsing import UnparsableError
    from lacuna_model.languages.registry import language_for

    language, text = language_for(document.path, document.language), document.text
    if language is None or len(text) > MOST_BYTES:
        return ""
    try:
        tree = language.parser().parse(text)
    except UnparsableError:
        return ""
    node = tree.root_node.descendant_for_byte_range(max(offset - 1, 0), offset)
    while node is not None:
        if "interpolation" in node.type or "substitution" in node.type:
            return ""
        inside = node.start_byte < offset < node.end_byte
        if "comment" in node.type and (inside or (node.end_byte == offset and not node.type.startswith("block"))):
            return "comment"
        if inside and ("string" in node.type or node.type in ("template_literal", "char_literal")):
            return "string"
        node = node.parent
    return ""
