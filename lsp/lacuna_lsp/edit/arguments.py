"""The arguments of our commands, as clients send them."""

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
    """One JSON object in camel case."""


class Place(Arguments, frozen=True):
    """A position of LSP."""

    line: Natural
    character: Natural

    @property
    def lsp(self) -> types.Position:
        """As lsprotocol has it."""
        return types.Position(self.line, self.character)


class Span(Arguments, frozen=True):
    """A range of LSP."""

    start: Place
    end: Place

    @property
    def lsp(self) -> types.Range:
        """As lsprotocol has it."""
        return types.Range(self.start.lsp, self.end.lsp)


class TextDocument(Arguments, frozen=True):
    """A document, and the version that is meant where there is one."""

    uri: str
    version: int | None = None


class FillRegions(Arguments, frozen=True):
    """``lacuna.fillRegions``: the ranges, or all markers or empty bodies, of the document or ``within`` a range."""

    text_document: TextDocument
    ranges: tuple[Span, ...] = ()
    select: Literal["ranges", "markers", "bodies"] = "ranges"
    within: Span | None = None


class Regenerate(Arguments, frozen=True):
    """``lacuna.regenerate``: other texts for a range; ``choose`` lets the user choose one of them at once."""

    text_document: TextDocument
    range: Span
    count: Annotated[int, Meta(ge=1, le=8)] = 3
    choose: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()


class Propagate(Arguments, frozen=True):
    """``lacuna.propagate``: the change nearest to a position, made at all places like it, in the file or everywhere."""

    text_document: TextDocument
    position: Place
    scope: Literal["file", "workspace"] = "workspace"


class PlacesOf(Arguments, frozen=True):
    """Ranges of one document."""

    uri: str
    ranges: tuple[Span, ...]


class Refactor(Arguments, frozen=True):
    """``lacuna.refactor``: a pattern, a query, ranges or a recipe; the first three with a template.

    ``paths`` are files and folders, ``text_document`` one open document; without either it is the whole workspace.
    """

    pattern: str = ""
    query: str = ""
    ranges: tuple[PlacesOf, ...] = ()
    template: str = ""
    recipe: str = ""
    settings: dict[str, str] = {}
    language: str = ""
    paths: tuple[str, ...] = ()
    text_document: TextDocument | None = None


class Recipes(Arguments, frozen=True):
    """``lacuna.recipes``: the document that they are for."""

    text_document: TextDocument


class Where(Arguments, frozen=True):
    """``lacuna.showContext``: a place in a document."""

    text_document: TextDocument
    position: Place


class NextPart(Arguments, frozen=True):
    """``lacuna.nextPart``: the next word or line of a suggestion's text."""

    text: str
    unit: Unit


def read(kind: type[A], arguments: Sequence[Any]) -> A:
    """The arguments of a command; raises RequestError that names what is wrong with them."""
    if len(arguments) != 1:
        raise RequestError(f"this command takes one argument, an object, not {len(arguments)}")
    try:
        return msgspec.convert(arguments[0], kind)
    except msgspec.ValidationError as error:
        raise RequestError(f"bad argument: {error}") from None
