"""Says of the places of a renamed name whether they are the same variable, by the scopes of the language."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

from lacuna_model.next_edit.changes import Kind, RecentChange, TokenizedText, is_name
from lacuna_model.next_edit.places import MatchedPlace
from lacuna_model.next_edit.scopes import Occurrence, ParsedText, Scopes
from lacuna_model.text.diff import Hunk

# Where a text lies whose places are looked at: it is that of the change, a later one of the same file, another file, or
# a part of a file that may be the same one.
Where = Literal["here", "later", "elsewhere", "apart"]


class Relation(IntEnum):
    """How the name at a place is related to one of the change.

    It is ``RENAMED`` where it is the same variable, whose declaration has the new name.
    """

    OTHER = 0
    POSSIBLE = 1
    RENAMED = 2


class Related(NamedTuple):
    """How the names of a place are related to those of a change: ``kind`` says what they stand in, if that is known.

    ``shorthand``: one of them is the key of a member, too, which keeps its name.
    """

    is_renamed: bool = False
    kind: Kind | None = None
    shorthand: bool = False


@dataclass(frozen=True, slots=True)
class _Rename:
    """A name that the change has exchanged for another, where it stands in the change, and in the looked at text."""

    old: str
    new: str
    changed: Occurrence
    of_declaration: bool
    is_another: bool  # the new name is that of a variable that was there before
    scopes: Scopes


class Renames:
    """The renames of a change, and the places of a text that they may reach."""

    def __init__(self, change: RecentChange, tokens: TokenizedText, where: Where) -> None:
        self._change, self._tokens, self._where = change, tokens, where
        self._own = ParsedText(change.new, change.language)
        self._there = self._own if where == "here" else ParsedText(tokens, change.language)
        self._renames = [one for one in map(self._rename, change.exchanges) if one is not None]

    def _rename(self, op: Hunk) -> _Rename | None:
        old = self._change.old.texts[op.start : op.end]
        new = self._change.new.texts[op.new_start : op.new_end]
        if not (len(old) == len(new) == 1 and is_name(old[0]) and is_name(new[0])):
            return None
        names = old[0], new[0]
        own, there = self._own.scopes(names), self._there.scopes(names)
        if own is None or there is None:
            return None
        changed = own.at(op.new_start)
        another = own.declares(changed.home, self._indexes(names[1], inside=False))
        kept = own.declares(changed.home, self._indexes(names[0], inside=True))
        return _Rename(*names, changed, changed.declares and not (another or kept), another, there)

    def _indexes(self, name: str, *, inside: bool) -> list[int]:
        """Returns where a name stands in the new text, inside or outside of the change."""
        first, last = self._change.new_span
        return [index for index in self._change.new.places.get(name, ()) if (first <= index < last) == inside]

    def of(self, place: MatchedPlace) -> Related | None:
        """Returns how the names that a place exchanges are related to those of the change, by the least sure one.

        None where the change may not be made: another variable is there, or a key that needs its old name.
        """
        pattern = place.pattern
        known = [one for one in self._renames if one.new in pattern.written]
        gone = [(place.parts[number][0], text) for number, text in pattern.gone.items()]
        if not gone or not {text for _, text in gone} <= {one.old for one in known} or len(gone) < len(pattern.written):
            return Related()  # more than names is exchanged
        found = list[tuple[Relation, Occurrence]]()
        for index, text in gone:
            renames = [one for one in known if one.old == text]
            there = renames[0].scopes.at(index)
            before = self._tokens.texts[max(index - 2, 0) : index]
            is_value = any(before == [one.new, "="] for one in renames)  # what the new name stands for
            relation = max(self._relation(one, there) for one in renames)
            found.append((Relation.OTHER if is_value else relation, there))
        relation, there = min(found, key=lambda one: (one[0], one[1].kind == "code"))
        shorthand = any(one.shorthand for _, one in found)
        if relation is Relation.OTHER or (shorthand and len(pattern.old) > 1):
            return None
        return Related(relation is Relation.RENAMED, there.kind if there.role != "other" else None, shorthand)

    def _relation(self, one: _Rename, there: Occurrence) -> Relation:
        changed, same_text = one.changed, self._where in ("here", "later")
        other, the_same = Relation.OTHER, Relation.RENAMED if one.of_declaration else Relation.POSSIBLE
        if changed.role == "variable" and there.role == "variable":
            if not same_text:
                own = changed.is_local and self._where == "elsewhere"
                return other if own or there.is_local else Relation.POSSIBLE
            same = (changed.home, changed.number) == (there.home, there.number)
            return other if not same or (one.is_another and there.declares) else the_same
        if changed.is_local and there.kind != "code":
            # A plain word means anything there.
            inside = self._where == "apart" or (same_text and changed.home in there.around)
            return Relation.POSSIBLE if inside and not (one.old.isalpha() and one.old.islower()) else other
        if "tag" in (changed.role, there.role):
            return Relation.POSSIBLE if changed.role == there.role else other
        if "keyword" in (changed.role, there.role):
            # A keyword is the parameter of the function that is called, and no variable.
            variable, keyword = (changed, there) if changed.role == "variable" else (there, changed)
            if variable.role != "variable":
                return Relation.POSSIBLE
            return the_same if variable.parameter_of and variable.parameter_of == keyword.called else other
        if changed.owner and there.owner:
            if changed.owner != there.owner:
                return other if one.scopes.declares_member(there.owner) else Relation.POSSIBLE
            if same_text:
                return the_same
        if there.role == "member" and changed.role == "variable":
            known = changed.is_local or (one.of_declaration and same_text)
            # A constructor's parameters are often called like the members that they are kept in.
            return other if known and not (there.owner and changed.parameter_of == there.owner) else Relation.POSSIBLE
        return other if changed.role == "member" and there.is_local else Relation.POSSIBLE
