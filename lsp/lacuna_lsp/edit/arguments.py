"""The arguments of Lacuna's commands, as clients send them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from lsprotocol import types
from msgspec import Meta

from lacuna_lsp.suggest.parts import Unit
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Diagnostic

Natural = Annotated[int, Meta(ge=0)]
A = TypeVar("A", bound="Arguments")


class Arguments(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A JSON object with keys in camel case."""


class PositionArgument(Arguments, frozen=True):
    """A position in LSP's form."""

    line: Natural
    character: Natural

    @property
    def lsp(self) -> types.Position:
        """The position as an lsprotocol object."""
        return types.Position(self.line, self.character)


class Span(Arguments, frozen=True):
    """A range in LSP's form."""

    start: PositionArgument
    end: PositionArgument

    @property
    def lsp(self) -> types.Range:
        """The range as an lsprotocol object."""
        return types.Range(self.start.lsp, self.end.lsp)


class TextDocument(Arguments, frozen=True):
    """A document, with the expected version if the client sends one."""

    uri: str
    version: int | None = None


class FillRegions(Arguments, frozen=True):
    """``lacuna.fillRegions``: fills the ranges, all markers or all empty bodies, optionally only ``within`` a range."""

    text_document: TextDocument
    ranges: tuple[Span, ...] = ()
    select: Literal["ranges", "markers", "bodies"] = "ranges"
    within: Span | None = None


class Regenerate(Arguments, frozen=True):
    """``lacuna.regenerate``: finds other texts for a range; ``choose`` lets the user pick one at once."""

    text_document: TextDocument
    range: Span
    count: Annotated[int, Meta(ge=1, le=8)] = 3
    choose: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()


class EditArguments(Arguments, frozen=True):
    """``lacuna.edit``: rewrites the lines of a range as the ``instruction`` says."""

    text_document: TextDocument
    range: Span
    instruction: str
    diagnostics: tuple[Diagnostic, ...] = ()


class Propagate(Arguments, frozen=True):
    """``lacuna.propagate``: makes the change nearest to a position at all similar places of the file or workspace."""

    text_document: TextDocument
    position: PositionArgument
    scope: Literal["file", "workspace"] = "workspace"


class PlacesOf(Arguments, frozen=True):
    """Ranges of one document."""

    uri: str
    ranges: tuple[Span, ...]


class Refactor(Arguments, frozen=True):
    """``lacuna.refactor``: rewrites the places of a pattern, a query or ranges, or applies a recipe.

    The places become what the template says, or their lines are rewritten by the instruction.

    ``paths`` are files and folders, ``text_document`` is one open document; without either, the whole workspace is
    searched.
    """

    pattern: str = ""
    query: str = ""
    ranges: tuple[PlacesOf, ...] = ()
    template: str = ""
    instruction: str = ""
    recipe: str = ""
    settings: dict[str, str] = {}
    language: str = ""
    paths: tuple[str, ...] = ()
    text_document: TextDocument | None = None


class Recipes(Arguments, frozen=True):
    """``lacuna.recipes``: the document to list recipes for."""

    text_document: TextDocument


class ContextArguments(Arguments, frozen=True):
    """``lacuna.showContext``: a place in a document."""

    text_document: TextDocument
    position: PositionArgument


class NextPart(Arguments, frozen=True):
    """``lacuna.nextPart``: a suggestion's text, and the unit of its next part."""

    text: str
    unit: Unit


def read(kind: type[A], arguments: Sequence[Any]) -> A:
    """Converts a command's arguments to ``kind``; raises RequestError with the reason if they are wrong."""
    if len(arguments) != 1:
        raise RequestError(f"this command takes one argument, an object, not {len(arguments)}")
    try:
        return msgspec.convert(arguments[0], kind)
    except msgspec.ValidationError as error:
        raise RequestError(f"bad argument: {error}") from None
