"""Makes the user's last change at the places that follow it, found by the rules over tokens or by the model."""

import asyncio
from collections.abc import Iterator, Sequence

from lacuna_lsp.edit.arguments import Propagate, Refactor
from lacuna_lsp.edit.bulk import source_of, sources
from lacuna_lsp.next_edit.offers import Offer
from lacuna_lsp.next_edit.writing import near
from lacuna_lsp.server import Server
from lacuna_model.core.errors import RequestError
from lacuna_model.next_edit.changes import RecentChange, hunks, nearest
from lacuna_model.next_edit.following import ELSEWHERE, PREVIEWED, SURE, candidates, chosen
from lacuna_model.next_edit.tokens import TokenizedText
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.refactoring import Found, Refactoring
from lacuna_server.refactor.rewriting.rewrite import Rewrite, first_line


async def followed(ls: Server, wanted: Propagate) -> tuple[Refactoring, list[Source]]:
    """Returns the user's last change as a refactor of the places that follow it, and the searched texts.

    The rules over tokens find the places. Where they find none, the model rewrites the lines near the change. Raises
    RequestError if nothing was changed since the document was saved.
    """
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    new = source_of(document)
    change = await asyncio.to_thread(_change_at, document.saved.decode(), new, document.offset(wanted.position))
    language = new.language.name
    where = Refactor(text_document=wanted.text_document if wanted.scope == "file" else None, language=language)
    looked_at, _ = await sources(ls, where, frozenset([language]))
    if all(source.path != new.path for source in looked_at):
        looked_at.append(new)
    found = await asyncio.to_thread(_by_tokens, change, new, looked_at)
    if not found:
        written = await near(ls.engine, document, change, (), wanted.position.line)
        found = [(new, item) for item in _of_offers([one for one in written if one.probability >= SURE], new)]
    return Refactoring("Make the change everywhere", lambda _: found, frozenset([language])), looked_at


def _by_tokens(change: RecentChange, new: Source, looked_at: Sequence[Source]) -> list[Found]:
    return [(one, item) for one in looked_at for item in _rewrites(change, one, here=one.path == new.path)]


def _change_at(old: str, new: Source, at: int) -> RecentChange:
    """Returns the change nearest to byte ``at`` of the new text; raises RequestError if the texts are equal."""
    hunk = nearest(hunks(old, new.text), new.data[:at].count(b"\n"))
    if hunk is None:
        raise RequestError("nothing has been changed in this file since it was saved")
    return RecentChange(TokenizedText(old), TokenizedText(new.text), hunk, new.language)


def _rewrites(change: RecentChange, source: Source, *, here: bool) -> Iterator[Rewrite]:
    """Yields the places of a source that follow a change; ``here``: the change was made in this source."""
    tokens = change.new if here else TokenizedText(source.text)
    found = candidates(change, tokens, where="here" if here else "elsewhere")
    for one in chosen(found, PREVIEWED if here else ELSEWHERE):
        place = one.place
        yield Rewrite(source.offset(place.start), source.offset(place.end), (place.text,), _label(tokens, place.start))


def _of_offers(found: Sequence[Offer], source: Source) -> Iterator[Rewrite]:
    """Yields offers of whole lines of a source as rewrites."""
    lines = source.data.splitlines(keepends=True)
    for one in found:
        start = len(b"".join(lines[: one.row]))
        yield Rewrite(start, start + len(one.old.encode()), (one.new,), first_line(one.old))


def _label(tokens: TokenizedText, offset: int) -> str:
    return first_line(tokens.text[tokens.text.rfind("\n", 0, offset) + 1 :].split("\n", 1)[0])
