"""Says of the places of a renamed name whether they are the same variable, by the scopes of the language."""

from dataclasses import dataclass, replace
from typing import Literal

from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.places import MatchedPlace
from lacuna_model.next_edit.scopes import Occurrence, ParsedText, Scopes
from lacuna_model.next_edit.tokens import Kind, TokenizedText, is_name
from lacuna_model.text.diff import Hunk

# Where a text lies whose places are looked at: it is that of the change, a later one of the same file, another file, or
# a part of a file that may be the same one.
Where = Literal["here", "later", "elsewhere", "apart"]
# ``renamed``: the same variable, whose declaration has the new name.
Relation = Literal["renamed", "same", "unknown", "other"]
_ORDER: tuple[Relation, ...] = ("other", "unknown", "same", "renamed")


@dataclass(frozen=True, slots=True)
class Related:
    """How the names of a place are related to those of a change: ``kind`` says what they stand in, if that is known.

    ``shorthand``: one of them is the key of a member, too, which keeps its name.
    """

    relation: Relation = "unknown"
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
        self._scopes: dict[tuple[str, str], tuple[Scopes, Scopes] | None] = {}
        self._renames = [one for one in map(self._rename, change.exchanges) if one is not None]

    @property
    def _is_same_text(self) -> bool:
        return self._where in ("here", "later")

    def _rename(self, op: Hunk) -> _Rename | None:
        old = self._change.old.texts[op.start : op.end]
        new = self._change.new.texts[op.new_start : op.new_end]
        if not (len(old) == len(new) == 1 and is_name(old[0]) and is_name(new[0])):
            return None
        names = old[0], new[0]
        if names not in self._scopes:
            own = self._own.scopes(names)
            there = own if self._there is self._own else self._there.scopes(names)
            self._scopes[names] = (own, there) if own is not None and there is not None else None
        if (known := self._scopes[names]) is None:
            return None
        own, there = known
        changed = own.at(op.new_start)
        another = own.declares(changed.home, self._indexes(names[1], inside=False))
        kept = own.declares(changed.home, self._indexes(names[0], inside=True))
        return _Rename(*names, changed, changed.declares and not (another or kept), another, there)

    def _indexes(self, name: str, *, inside: bool) -> list[int]:
        """Returns where a name stands in the new text, inside or outside of the change."""
        first, last = self._change.new_span
        return [index for index in self._change.new.places.get(name, ()) if (first <= index < last) == inside]

    def of(self, place: MatchedPlace) -> Related:
        """Returns how the names that a place exchanges are related to those of the change, by the least sure one."""
        known = [one for one in self._renames if one.new in place.pattern.written]
        gone = [(place.parts[number][0], text) for number, text in place.pattern.gone.items()]
        if not {text for _, text in gone} <= {one.old for one in known} or len(gone) < len(place.pattern.written):
            return Related()  # more than names is exchanged
        found = list[Related]()
        for index, text in gone:
            renames = [one for one in known if one.old == text]
            there = renames[0].scopes.at(index)
            relation = max((self._relation(one, there) for one in renames), key=_ORDER.index)
            if any(self._tokens.texts[max(index - 2, 0) : index] == [one.new, "="] for one in renames):
                relation = "other"  # it is what the new name stands for
            found.append(Related(relation, there.kind if there.role != "other" else None, there.shorthand))
        least = min(found, key=lambda one: _ORDER.index(one.relation), default=Related())
        return replace(least, shorthand=any(one.shorthand for one in found))

    def may_reach(self, place: MatchedPlace) -> bool:
        """Whether the change may be made at a place: no other variable is there, and no key that needs its old name."""
        related = self.of(place)
        return related.relation != "other" and not (related.shorthand and len(place.pattern.old) > 1)

    def _relation(self, one: _Rename, there: Occurrence) -> Relation:
        changed = one.changed
        if changed.role == "variable" and there.role == "variable":
            if not self._is_same_text:
                own = changed.is_local and self._where == "elsewhere"
                return "other" if own or there.is_local else "unknown"
            same = (changed.home, changed.number) == (there.home, there.number)
            if not same or (one.is_another and there.declares):
                return "other"
            return "renamed" if one.of_declaration else "same"
        if changed.is_local and there.kind != "code":
            # A plain word means anything there.
            inside = self._where == "apart" or (self._is_same_text and changed.home in there.around)
            return "unknown" if inside and not (one.old.isalpha() and one.old.islower()) else "other"
        if "tag" in (changed.role, there.role):
            return "unknown" if changed.role == there.role else "other"
        if "keyword" in (changed.role, there.role):
            return self._of_keyword(one, there)
        if changed.owner and there.owner and changed.owner != there.owner:
            return "other" if one.scopes.declares_member(there.owner) else "unknown"
        if changed.owner and there.owner and self._is_same_text:
            return "renamed" if one.of_declaration else "same"
        if there.role == "member" and changed.role == "variable":
            known = changed.is_local or (one.of_declaration and self._is_same_text)
            # A constructor's parameters are often called like the members that they are kept in.
            return "other" if known and not (there.owner and changed.parameter_of == there.owner) else "unknown"
        return "other" if changed.role == "member" and there.is_local else "unknown"

    def _of_keyword(self, one: _Rename, there: Occurrence) -> Relation:
        """A keyword is the parameter of the function that is called, and no variable."""
        variable, keyword = (one.changed, there) if one.changed.role == "variable" else (there, one.changed)
        if variable.role != "variable":
            return "unknown"
        if not variable.parameter_of or variable.parameter_of != keyword.called:
            return "other"
        return "renamed" if one.of_declaration else "same"
