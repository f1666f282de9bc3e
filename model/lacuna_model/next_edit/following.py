"""Puts the rules together: the places that would follow a change, each with its new text and a probability."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from lacuna_model.core import work
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.patterns import extracted, patterns
from lacuna_model.next_edit.places import MatchedPlace, places
from lacuna_model.next_edit.ranking import Seen, Surroundings, probability
from lacuna_model.next_edit.renames import Renames, Where
from lacuna_model.next_edit.tokens import Kind, TokenizedText, is_word
from lacuna_model.text.lines import first_of, splice

SURE = 0.5  # what is less likely is not offered
PREVIEWED = 0.42  # the same where the user has asked for all places, and sees them before they are changed
ELSEWHERE = 0.55  # the same in other files than that of the change
# What stands in the scope of a variable whose declaration was renamed.
RENAMED = 0.95
MAX_CANDIDATES = 600
MAX_WORK_S = 3.0  # of work for one change


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place that may want the change, with the ``probability`` (0..1) that it does, by the rules.

    Places of different ``kind`` are no single edit: a name in a string or a comment may mean something else.
    """

    place: MatchedPlace
    probability: float
    features: dict[str, float]
    kind: Kind = "code"


def candidates(
    change: RecentChange, tokens: TokenizedText, *, where: Where = "here", until: int | None = None
) -> list[Candidate]:
    """Returns the places of a text that may follow a change; ``where`` says how the text belongs to the change.

    The search ends at the mark ``until`` of this thread's work, or after ``MAX_WORK_S``.
    """
    until = work.mark(MAX_WORK_S) if until is None else until
    surroundings, renames, here = Surroundings(change, tokens), Renames(change, tokens, where), where == "here"
    avoided = [change.new_span] if here else []
    found: list[Candidate] = []
    for pattern in chain(patterns(change), extracted(change) if here else ()):
        words = [text for text in pattern.literals if is_word(text)]
        if not (words or here) or not all(word in tokens.text for word in words):
            continue  # without splitting the text into tokens
        found_places = places(pattern, tokens, avoided, until=until, accepts=renames.may_reach)
        own = [surroundings.seen(place) for place in found_places]
        found += _rated(surroundings, renames, own)
        if len(found) > MAX_CANDIDATES or work.reached(until):
            break
    return found


def _rated(surroundings: Surroundings, renames: Renames, own: Sequence[Seen]) -> Iterator[Candidate]:
    for one, features in zip(own, surroundings.features(own), strict=True):
        related = renames.of(one.place)
        renamed = related.relation == "renamed"
        if not renamed and surroundings.is_unrelated(one, features):
            continue
        named = one.place.pattern.kind == "extracted"
        likely = surroundings.of_extracted(one) if named else probability(features)
        place = surroundings.with_key(one.place) if related.shorthand else one.place
        kind = related.kind or surroundings.kind(place)
        yield Candidate(place, max(likely, RENAMED) if renamed else likely, features, kind)


def outside_change(change: RecentChange, tokens: TokenizedText, found: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates in another text that do not stand in lines that the change itself has written."""
    written = {line.rstrip("\r\n") for line in change.new.lines[change.hunk.new_start : change.hunk.new_end]}

    def line(one: Candidate) -> str:
        return first_of(tokens.text[tokens.text.rfind("\n", 0, one.place.start) + 1 :])

    return [one for one in found if line(one) not in written]


def chosen(found: Sequence[Candidate], least: float = SURE) -> list[Candidate]:
    """Returns the likely candidates, in order and without overlaps.

    Where a more specific pattern covers a likely candidate, its place is taken.
    """
    taken: list[Candidate] = []
    for one in sorted(found, key=lambda one: -one.probability):
        if one.probability < least:
            break
        if any(_overlap(one.place, other.place) for other in taken):
            continue
        wider = [
            other
            for other in found
            if _covers(other.place, one.place) and not any(_overlap(other.place, third.place) for third in taken)
        ]
        best = max(wider, key=lambda other: len(other.place.pattern.old), default=one)
        taken.append(replace(best, probability=max(one.probability, best.probability)))
    return sorted(taken, key=lambda one: one.place.start)


def _overlap(one: MatchedPlace, other: MatchedPlace) -> bool:
    return one.first < other.last and other.first < one.last


def _covers(wide: MatchedPlace, one: MatchedPlace) -> bool:
    """Whether a place of an exact pattern with more tokens contains another."""
    return (
        wide.start <= one.start
        and one.end <= wide.end
        and len(wide.pattern.old) > len(one.pattern.old)
        and not wide.pattern.variables
        and bool(wide.pattern.written)
    )


def applied(text: str, found: Sequence[Candidate]) -> str:
    """Returns a text with the changes of all candidates, which must be in order and disjoint."""
    return splice(text, [(one.place.start, one.place.end, one.place.text) for one in found])
