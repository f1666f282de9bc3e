"""An edit that an instruction asks for: the part, the texts beside it, what kind of text it is, and what is asked.

The words of an instruction only decide what is put back in an answer and what a person is warned of; no answer is
refused for them.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from lacuna_model.editing.names import Name, is_configuration, names
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import language_for
from lacuna_model.text.lines import splice

# Files of prose: by the ends of their names, by the beginnings of names without one, and by what editors call them.
PROSE = frozenset({".md", ".markdown", ".mdx", ".qmd", ".txt", ".rst", ".adoc", ".org", ".tex", ".textile", ".eml"})
PROSE_NAMES = re.compile(r"README|LICEN[SC]E|COPYING|CHANGE|NOTES|TODO|AUTHORS|CONTRIBUTING|COMMIT", re.IGNORECASE)
PROSE_LANGUAGES = frozenset({"markdown", "plaintext", "text", "restructuredtext", "latex", "git-commit"})
# The beginnings of words by which people ask for text to be deleted, shortened or replaced, in several languages.
_LESS = (
    r"remov|delet|drop\b|dropp|strip\b|stripp|without|inline|merg|clean|dedup|unus|dead\b|combin|omit|cut\b|get rid|"
    r"unnecess|redundan|superflu|useless|needless|keep only|only keep|entfern|lösch|ohne|streich|supprim|enlev|retir|"
    r"sans\b|elimin|borr|quita|rimuov|cancell|togli|senza|apag|exclu|удал|убер|"  # noqa: RUF001
    r"simplif|short(?:en|er|\W*$| version| text)|replac|extract|mov(?:e|ing)\b|condens|collaps|reduc(?!e\b)|summar|"
    r"concis|tighten|brief|compress|join|stop \w+ing\b|no longer|into one|one (?:line|sentence|paragraph)|zusammenf|"
    r"vereinfach|kürz|ersetz|remplac|reemplaz"
)
_LESS_SIGNS = "删|移除|去掉|简化|削除|消"
_ADDS = (
    r"(?:please |also |bitte )*(?:add|insert|append|prepend|also|raise|throw|log\b|validate|check|guard|handle|"
    r"document|annotate|reject|warn|ergänz|füg|ajout|añad|aggiung|"
    r"(?:return|print|exit|skip|ignore|do nothing|stop|fail|abort|continue)\b.*\b(?:if|when|unless|falls|wenn)\b)"
)
_COMMENTS = (
    "comment|docstring|javadoc|jsdoc|godoc|docs?\\b|document\\b|documentation|kommentar|commentaire|comentario|license"
)
_CODE_TOO = "code|out\\b|uncomment|hint|annotat|renam|raise|throw|return|refactor"
_CALLED = (
    r"\b(?:call|invok|run|start|execut)\w*\s+(?:the\s+)?(?:(?:function|method)\s+)?[`'\"]?([\w$]+)[`'\"]?(?:\(\))?\s+"
    r"(?:only|if|when|unless|after|before)\b"
)
_TRANSLATES = "translat|übersetz|tradui|traduc|tradu[cz]|перевед|翻译"
_CORRECTS = "fix|correct|korrig|corrig|spell|gramma|typo|proofread|rechtschreib|tippfehler|punctuat|orthogra"
_LITERAL = r"`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|\S*@\S+|\w+://\S+|\S*\w[./]\w\S*"


def pieces(name: str) -> list[str]:
    """The words that a name is made of, in small letters: ``loadOrders`` and ``load_orders`` are of two."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W_]+", spaced)]


@dataclass(frozen=True)
class Asked:
    """An instruction, read by its words."""

    instruction: str

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(word.lower() for word in re.findall(r"\w+", self.instruction))

    @cached_property
    def _pieces(self) -> frozenset[str]:
        return frozenset(piece for word in re.findall(r"\w+", self.instruction) for piece in pieces(word))

    def says(self, name: str) -> bool:
        """Whether the instruction says a name, in one word or in the words that it is made of."""
        return name.lower() in self._names or (len(pieces(name)) > 1 and self._pieces.issuperset(pieces(name)))

    def shares(self, text: str) -> bool:
        """Whether the instruction and a text have a word in common; of a word, four letters count.

        A word of one letter is a name, but for the article.
        """
        own, other = (
            {piece[:4] for word in re.findall(r"\w+", one) for piece in pieces(word) if len(piece) > 2}
            | set(re.findall(r"\b[b-zB-HJ-Z]\b|\d+(?:\.\d+)*", one))
            for one in (self.instruction, text)
        )
        return not own.isdisjoint(other)

    @cached_property
    def _told(self) -> str:
        """The instruction without quoted text, addresses and names of files, whose words ask for nothing."""
        return re.sub(_LITERAL, " ", self.instruction)

    def _has(self, stems: str) -> bool:
        return bool(re.search(rf"\b(?:{stems})", self._told, re.IGNORECASE))

    @property
    def less(self) -> bool:
        """Whether it asks for text to be deleted, shortened or replaced."""
        return self._has(_LESS) or bool(re.search(_LESS_SIGNS, self.instruction))

    @property
    def adds(self) -> bool:
        """Whether it asks for something to be added, and begins with that."""
        begins = re.match(rf"\W*{_ADDS}", self.instruction, re.IGNORECASE)
        return begins is not None and not self._has("instead|rather than|statt")

    @property
    def called(self) -> str:
        """The function that it wants called under a condition, or before or after something else; "" without one."""
        found = re.search(_CALLED, self.instruction, re.IGNORECASE)
        return found[1] if found else ""

    @property
    def comments(self) -> bool:
        """Whether it is about comments and documentation, and maybe about code too."""
        return self._has(_COMMENTS)

    @property
    def comments_alone(self) -> bool:
        """Whether it is about comments and documentation, so that code stays."""
        several = self.less and self._has("and\\b|und\\b|et\\b")
        return self.comments and not self._has(_CODE_TOO) and not several

    @property
    def translates(self) -> bool:
        """Whether it asks for another natural language."""
        return self._has(_TRANSLATES)

    @property
    def corrects(self) -> bool:
        """Whether it asks for mistakes to be corrected, so that most words stay."""
        return self._has(_CORRECTS)


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
        return prose or (not name.suffix and (not name.name or PROSE_NAMES.match(name.name) is not None))

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
        return self.names_of(self.old)

    def names_of(self, new: str) -> list[Name]:
        """The names that ``new`` defines in the place of the lines; the text is parsed once for several rules."""
        if new not in self._known:
            self._known[new] = self._names(self.whole(new), *self.span(new))
        return self._known[new]

    @cached_property
    def _known(self) -> dict[str, list[Name]]:
        return {}

    def _names(self, text: bytes, start: int, end: int) -> list[Name]:
        """The names that some bytes of a text define; prose defines none."""
        if self.is_prose or start >= end:
            return []
        return names(text, start, end, self.language, keyed=self.is_configuration)
