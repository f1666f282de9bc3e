"""The arguments of Lacuna's commands, as clients send them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from lsprotocol import types
from msgspec import Meta

from lacuna_lsp.client.protocol import Params
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Diagnostic

# A document, with the expected version if the client sends one.
Document = types.OptionalVersionedTextDocumentIdentifier
A = TypeVar("A", bound="Arguments")


class Arguments(Params, frozen=True, forbid_unknown_fields=True):
    """A JSON object with keys in camel case."""


class FillRegions(Arguments, frozen=True):
    """``lacuna.fillRegions``: fills the ranges, all markers or all empty bodies, optionally only ``within`` a range."""

    text_document: Document
    ranges: tuple[types.Range, ...] = ()
    select: Literal["ranges", "markers", "bodies"] = "ranges"
    within: types.Range | None = None


class Regenerate(Arguments, frozen=True):
    """``lacuna.regenerate``: finds other texts for a range; ``choose`` lets the user pick one at once."""

    text_document: Document
    range: types.Range
    count: Annotated[int, Meta(ge=1, le=8)] = 3
    choose: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()


class EditArguments(Arguments, frozen=True):
    """``lacuna.edit``: rewrites the lines of a range as the ``instruction`` says."""

    text_document: Document
    range: types.Range
    instruction: str
    diagnostics: tuple[Diagnostic, ...] = ()


class Propagate(Arguments, frozen=True):
    """``lacuna.propagate``: makes the change nearest to a position at all similar places of the file or workspace."""

    text_document: Document
    position: types.Position
    scope: Literal["file", "workspace"] = "workspace"


class Refactor(Arguments, frozen=True):
    """``lacuna.refactor``: rewrites the places of a pattern or a query, or applies a recipe.

    The places become what the template says, or their lines are rewritten by the instruction. ``text_document`` is one
    open document; without it, the whole workspace is searched.
    """

    pattern: str = ""
    query: str = ""
    template: str = ""
    instruction: str = ""
    recipe: str = ""
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    language: str = ""
    text_document: Document | None = None


class Recipes(Arguments, frozen=True):
    """``lacuna.recipes``: the document to list recipes for."""

    text_document: Document


class ContextArguments(Arguments, frozen=True):
    """``lacuna.showContext``: a place in a document."""

    text_document: Document
    position: types.Position


class Snooze(Arguments, frozen=True):
    """``lacuna.snooze``: for how many minutes nothing is suggested without a request; 0: suggestions go on."""

    minutes: Annotated[float, Meta(ge=0, le=24 * 60)] = 10


def read(kind: type[A], arguments: Sequence[Any]) -> A:
    """Converts a command's arguments to ``kind``; raises RequestError with the reason if they are wrong."""
    if len(arguments) != 1:
        raise RequestError(f"this command takes one argument, an object, not {len(arguments)}")
    try:
        return msgspec.convert(arguments[0], kind)
    except msgspec.ValidationError as error:
        raise RequestError(f"bad argument: {error}") from None
