"""What is kept of one edit and of what follows it: the text around both, cut to what a prompt can have."""

import msgspec

# Lines below a change that are rewritten; where nothing is to do there, they stay.
ROWS = 12
# Characters that are kept before the change and behind the rewritten lines.
BEFORE, AFTER = 8_000, 4_000


class EditExample(msgspec.Struct, frozen=True):
    """The lines ``old`` have become the lines ``new``, and then the lines ``standing`` below become ``updated``.

    ``prefix`` is the text before the change, ``suffix`` the one behind the standing lines.
    """

    package: str
    version: str
    licence: str
    path: str
    language: str
    prefix: str
    old: str
    new: str
    standing: str
    updated: str
    suffix: str

    @property
    def follows(self) -> bool:
        """Whether something is to do."""
        return self.standing != self.updated
