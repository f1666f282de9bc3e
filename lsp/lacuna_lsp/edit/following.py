"""The places that follow a change, by the rules over tokens or by the model, as rewrites of a refactor."""

from collections.abc import Iterator, Sequence

from lacuna_lsp.next_edit.offers import Offer
from lacuna_model.next_edit.changes import RecentChange, hunks, nearest
from lacuna_model.next_edit.following import ELSEWHERE, PREVIEWED, candidates, chosen
from lacuna_model.next_edit.tokens import TokenizedText
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.rewrite import Rewrite, first_line


def change_at(old: Source, new: Source, at: int) -> RecentChange | None:
    """Returns the change nearest to byte ``at`` of the new text; None if the texts are equal."""
    row = new.data[:at].count(b"\n")
    hunk = nearest(hunks(old.text, new.text), row)
    return RecentChange(TokenizedText(old.text), TokenizedText(new.text), hunk) if hunk is not None else None


def rewrites(change: RecentChange, source: Source, *, here: bool) -> Iterator[Rewrite]:
    """Yields the places of a source that follow a change; ``here``: the change was made in this source."""
    tokens = change.new if here else TokenizedText(source.text)
    for one in chosen(candidates(change, tokens, here=here), PREVIEWED if here else ELSEWHERE):
        place = one.place
        yield Rewrite(source.offset(place.start), source.offset(place.end), (place.text,), _label(tokens, place.start))


def of_offers(found: Sequence[Offer], source: Source) -> Iterator[Rewrite]:
    """Yields offers of whole lines of a source as rewrites."""
    lines = source.data.splitlines(keepends=True)
    for one in found:
        start = len(b"".join(lines[: one.row]))
        yield Rewrite(start, start + len(one.old.encode()), (one.new,), first_line(one.old))


def _label(tokens: TokenizedText, offset: int) -> str:
    return first_line(tokens.text[tokens.text.rfind("\n", 0, offset) + 1 :].split("\n", 1)[0])
