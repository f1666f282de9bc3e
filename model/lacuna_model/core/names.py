"""What is known of the names that a fill uses."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

# ``known``: the file declares a name outside of the gap, or the project, an imported package or the language does.
# ``nowhere``: a plain name that nobody declares, or a member that a known module has not. ``members``: a name behind
# the dot of an unknown receiver that none of them has.
NameKind = Literal["known", "nowhere", "members"]
UNKNOWN: tuple[NameKind, ...] = ("nowhere", "members")


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name that a fill uses and does not declare itself; its first use ends at the byte ``end`` of the fill.

    With ``is_instead``, it was written in the place of one that is nowhere.
    """

    name: str
    kind: NameKind
    end: int
    is_instead: bool = False


class NameJudge(Protocol):
    """Says of the names that a fill of one gap uses whether they exist. Places are characters of the fill."""

    def uses(self, fill: str) -> Iterable[NameUse] | None:
        """The names that a fill uses and does not declare; None where it cannot be parsed."""
        ...

    def nowhere(self, fill: str, since: int) -> int | None:
        """Where the first name begins that ends at ``since`` or behind it and is surely nowhere; None without one.

        It is negative for a name that begins before the gap. What the fill ends with may go on, and is not judged.
        """
        ...

    def leads(self, fill: str, start: int) -> bool:
        """Whether the name that begins at ``start`` is known, or may become so where the fill ends with it."""
        ...

    def ends(self, fill: str, start: int) -> bool:
        """Whether the name that begins at ``start`` ends in the fill."""
        ...

    def wrote_instead(self, before: str) -> None:
        """Take in that the name behind ``before``, the fill up to it, stands in the place of one that is nowhere."""
        ...

    def ended(self, fill: str) -> str:
        """A fill that ends here: its last word goes on as the text behind the gap does, and ends."""
        ...
