"""Decides where a suggestion helps, whether it may have several lines, and how much of it is shown unasked."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from lacuna_lsp.document import ClientDocument
from lacuna_model.core.regions import one_line
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.languages.registry import language_for
from lacuna_model.text.lines import LINE_END, OPENS_BLOCK, first_of, in_word
from lacuna_server.refactor.places.source import ancestors
from lacuna_server.wire.config import Dial, SuggestIn

# The allowed rest of the line after the cursor for a suggestion without a request: nothing, or closing brackets,
# quotes and punctuation that an editor inserts.
_CLOSERS = re.compile(r"[\s)\]}\"'`]*[:{;,]?\s*")
_COMPLETE = re.compile(r"[;}]\s*$")

Shape = Literal["none", "line", "block"]
# From which probability on a part of a suggestion is shown.
AT_LEAST: dict[Dial, float] = {"quiet": 0.8, "normal": 0.6, "bold": 0.5}
# An end of a line is cut off only where so many characters are left.
LEAST_CHARACTERS = 4
# Language ids of texts that are no code.
MESSAGES = frozenset({"gitcommit", "git-commit", "git-rebase", "gitrebase", "hgcommit", "scminput"})
# A larger document is taken for code everywhere: parsing it would delay each key.
MOST_BYTES = 200_000


def shape(before: str, after: str, multiline: Literal["auto", "always", "never"], *, invoked: bool) -> Shape:
    """Returns the shape of the suggestion for a cursor between two texts.

    There is none inside a word and, unless ``invoked``, none before further text on the line or after a complete
    statement. A suggestion may have several lines on request or where a block has just been opened.
    """
    *lines, head = LINE_END.split(before)
    tail = first_of(after)
    if in_word(head[-1:]) and in_word(tail[:1]):
        return "none"
    if not invoked and (not _CLOSERS.fullmatch(tail) or (_COMPLETE.search(head) and head.strip())):
        return "none"
    if multiline == "never" or one_line(tail):
        return "line"
    if multiline == "always" or invoked:
        return "block"
    above = next((line for line in reversed([*lines, head]) if line.strip()), "")
    return "block" if OPENS_BLOCK.search(above) else "line"


def sure_part(
    text: str, lines: Sequence[float], words: Sequence[tuple[int, float]], at_least: float, typed: int = 0
) -> str:
    """The longest part of a text that is right with a probability of ``at_least``: whole lines, or words of the first.

    The first ``typed`` characters are known to be right, which makes what follows likelier. ``lines`` and ``words`` are
    those of :class:`lacuna_model.core.params.InfillResult`; where there are none, the whole text is sure.
    """
    ends = [size - 1 for size in accumulate(len(line) + 1 for line in text.split("\n")[: len(lines)])]
    known = [sure for end, sure in words if end <= typed]
    known += [sure for end, sure in zip(ends, lines, strict=False) if end < typed]
    wanted = at_least * min(known, default=1.0)
    sure = sum(one >= wanted for one in lines)
    if sure == len(lines):
        return text
    if sure:
        return text[: ends[sure - 1]].removesuffix("\r") if sure <= len(ends) else text
    part = text[: max((end for end, one in words if one >= wanted), default=0)]
    return part if len(part[typed:].strip()) >= LEAST_CHARACTERS else ""


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
    language, text = language_for(document.path, document.language), document.text
    if language is None or len(text) > MOST_BYTES:
        return ""
    try:
        tree = language.parser().parse(text)
    except UnparsableError:
        return ""
    here = tree.root_node.descendant_for_byte_range(max(offset - 1, 0), offset)
    for node in [] if here is None else (here, *ancestors(here)):
        if "interpolation" in node.type or "substitution" in node.type:
            return ""
        inside = node.start_byte < offset < node.end_byte
        if "comment" in node.type and (inside or (node.end_byte == offset and not node.type.startswith("block"))):
            return "comment"
        if inside and ("string" in node.type or node.type in ("template_literal", "char_literal")):
            return "string"
    return ""
