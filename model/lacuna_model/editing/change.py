"""An edit that an instruction asks for: the part, the texts beside it, and what kind of text it is."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from lacuna_model.editing.asked import Asked
from lacuna_model.editing.names import Name, is_configuration, names
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import language_for
from lacuna_model.text.lines import splice

# Files of prose: by the ends of their names, by the beginnings of names without one, and by what editors call them.
PROSE = frozenset({".md", ".markdown", ".mdx", ".qmd", ".txt", ".rst", ".adoc", ".org", ".tex", ".textile", ".eml"})
PROSE_NAMES = (
    "README",
    "LICENSE",
    "LICENCE",
    "COPYING",
    "CHANGE",
    "NOTES",
    "TODO",
    "AUTHORS",
    "CONTRIBUTING",
    "COMMIT",
)
PROSE_LANGUAGES = frozenset({"markdown", "plaintext", "text", "restructuredtext", "latex", "git-commit"})


@dataclass(frozen=True)
class AskedChange:
    """The bytes ``start`` to ``end`` of ``text``, whole lines, which are to change as ``asked``.

    The text is that of the file ``path``; ``called`` is what an editor calls its language.
    """

    text: bytes
    start: int
    end: int
    asked: Asked
    path: str = ""
    called: str = ""

    @cached_property
    def language(self) -> Language | None:
        """The language of the text; None without a grammar."""
        return language_for(self.path, self.called)

    @cached_property
    def old(self) -> str:
        """The lines as they are."""
        return self.text[self.start : self.end].decode()

    @cached_property
    def before(self) -> str:
        """The text before the lines."""
        return self.text[: self.start].decode()

    @cached_property
    def after(self) -> str:
        """The text after the lines."""
        return self.text[self.end :].decode()

    @cached_property
    def is_configuration(self) -> bool:
        """Whether the text is of keys and values, with a grammar or without one."""
        if self.language is not None:
            return self.language.name in ("json", "toml", "yaml")
        return is_configuration(self.text.decode())

    @cached_property
    def is_prose(self) -> bool:
        """Whether the text is for readers: no code, with a grammar or without one, and no configuration."""
        if self.language is not None or self.is_configuration:
            return False
        name = PurePath(self.path)
        prose = name.suffix.lower() in PROSE or self.called.lower() in PROSE_LANGUAGES
        return prose or (not name.suffix and (not name.name or name.name.upper().startswith(PROSE_NAMES)))

    def whole(self, new: str) -> bytes:
        """The text with ``new`` in the place of the lines."""
        return splice(self.text, [(self.start, self.end, new.encode())])

    def span(self, new: str) -> tuple[int, int]:
        """The bytes of ``new`` in the text that has it in the place of the lines."""
        return self.start, self.start + len(new.encode())

    @cached_property
    def outside(self) -> list[Name]:
        """The names that the text defines beside the lines."""
        return [*self._names(self.text, 0, self.start), *self._names(self.text, self.end, len(self.text))]

    @cached_property
    def names(self) -> list[Name]:
        """The names that the lines define."""
        return self._names(self.text, self.start, self.end)

    def names_of(self, new: str) -> list[Name]:
        """The names that ``new`` defines in the place of the lines."""
        return self._names(self.whole(new), *self.span(new))

    def _names(self, text: bytes, start: int, end: int) -> list[Name]:
        """The names that some bytes of a text define; prose defines none."""
        if self.is_prose or start >= end:
            return []
        return names(text, start, end, self.language, keyed=self.is_configuration)
