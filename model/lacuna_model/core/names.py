"""What is known of the names that a fill uses."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class NameEvidence:
    """How many of the names that a fill uses, and does not declare itself, are known, by where; each counts once.

    ``declared``: in the file, outside of the gap. ``project``: defined by another file of the project. ``package``: in
    a package that the file imports. ``nowhere``: plain names that nobody declares, and members that a known module or
    class has not; ``members``: names behind the dot of an unknown receiver that neither the file nor the project nor
    an imported package nor the language has. ``unknown`` are the names of these two.
    """

    declared: int = 0
    imported: int = 0
    builtin: int = 0
    project: int = 0
    package: int = 0
    nowhere: int = 0
    members: int = 0
    unknown: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of names."""
        known = self.declared + self.imported + self.builtin + self.project + self.package
        return known + self.nowhere + self.members


class Evidence(Protocol):
    """Says what is known of the names of a fill of one gap; None in a language whose names are not known."""

    def __call__(self, fill: str) -> NameEvidence | None:
        """The evidence of a fill."""
        ...
