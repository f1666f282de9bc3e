"""What an instruction asks for, as far as its words tell: less text, other names, comments alone, another form."""

import re
from dataclasses import dataclass
from functools import cached_property

# The beginnings of words by which people ask for text to be deleted, in several languages,
_GONE = (
    r"remov|delet|drop\b|dropp|strip\b|stripp|without|inline|merg|clean|dedup|unus|dead\b|combin|omit|cut\b|get rid|"
    r"unnecess|redundan|superflu|useless|needless|keep only|only keep|entfern|lösch|ohne|streich|supprim|enlev|retir|"
    r"sans\b|elimin|borr|quita|rimuov|cancell|togli|senza|apag|exclu|удал|убер"  # noqa: RUF001
)
# and for less text or another text in its place.
_LESS = (
    rf"{_GONE}|simplif|short(?:en|er|\W*$| version| text)|replac|extract|"
    r"mov(?:e|ing)\b|condens|collaps|reduc(?!e\b)|summar|concis|tighten|"
    r"brief|compress|join|into one|one (?:line|sentence|paragraph)|zusammenf|vereinfach|kürz|ersetz|remplac|reemplaz"
)
_LESS_SIGNS = "删|移除|去掉|简化|削除|消"
_ADDS = (
    r"^\W*(?:please |also |bitte )*(?:add|insert|append|prepend|also|raise|throw|log\b|validate|check|guard|handle|"
    r"document|annotate|reject|warn|ergänz|füg|ajout|añad|aggiung|"
    r"(?:return|print|exit|skip|ignore|do nothing|stop|fail|abort|continue)\b.*\b(?:if|when|unless|falls|wenn)\b)"
)
_OTHER_NAME = (
    "instead|rather than|statt|au lieu|chang|call it|becom|swap|switch|comment|disabl|deactiv|use\\b|make|nenn"
)
_ANNOTATES = r"type hint|type annotation|type-hint|typehint|annotate|\btypes\b|typannotation|typhinweis"
_SETS = (
    r"^\W*(?:please |bitte )*(?:set|change|bump|increase|decrease|lower|raise|update|switch|make)\b"
    r".*\b(?:to|by|from)\b"
)
_RENAMED = (
    r"renam\w*\s+(?:the\s+)?(?:\w+\s+){0,3}?[`'\"]?([\w$]+)[`'\"]?(?:\(\))?\s+(?:to|into|as|->|→)\s+[`'\"]?([\w$]+)"
)
_CALLED = (
    r"\b(?:call|invok|run|start|execut)\w*\s+(?:the\s+)?(?:(?:function|method)\s+)?[`'\"]?([\w$]+)[`'\"]?(?:\(\))?\s+"
    r"(?:only|if|when|unless|after|before)\b"
)
_LITERAL = r"`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|\S*@\S+|\w+://\S+|\S*\w[./]\w\S*"
_RENAMES = "renam|umbenenn|renomm|renombr|rinomin|переимен|snake|camel|pascal|kebab|naming|重命名"
_OTHER_SHAPE = (
    "convert|turn|transform|restructur|refactor|rewrit|dataclass|namedtuple|record|struct|enum|interface|component|"
    "hook|builder|property|properties|inherit|split|umwandel|umform|convertis|transform"
)
# What has a name of its own: one who wants fewer of these wants names gone.
_NAMED_THINGS = (
    "function|method|class|constructor|field|attribut|propert|variable|constant|import|include|helper|getter|setter|"
    "member|key|setting|option|entry|entries|section|service|script|dependenc|target|rule|type|struct|enum|interface|"
    "everything|all|code|duplicat|dead|unused|overload|wrapper|test|block|line|funktion|methode|klasse|fonction"
)
_COMMENTS = (
    "comment|docstring|javadoc|jsdoc|godoc|docs?\\b|document\\b|documentation|kommentar|commentaire|comentario|license"
)
_CODE_TOO = "code|out\\b|uncomment|hint|annotat|renam|raise|throw|return|refactor"
_FORM = (
    "format|indent|align|whitespace|space|tab\\b|tabs\\b|wrap|reflow|quot|semicolon|comma|brace|bracket|style|lint|sort|"
    "order|upper|lower|capital|line|punctuat|pep ?8|prettier|gofmt|black|einrück"
)
_FENCES = "fence|code ?block|snippet|example|markdown|backtick|beispiel|exemple|usage|command|sample"
_HEADINGS = "head|title|section|chapter|headline|überschrift|titre|abschnitt|outline|structure|markdown|document|readme"
_LISTS = "list|table|bullet|item|markdown|liste|tabelle|tableau"
_MORE = (
    "add|insert|writ|append|includ|mention|explain|expand|extend|exampl|elaborat|detail|describ|document|section|"
    "ergänz|füg|ajout|añad|aggiung|split|list|table|step"
)
_TRANSLATES = "translat|übersetz|tradui|traduc|tradu[cz]|перевед|翻译"
_SPELLS = "spell|gramma|typo|proofread|rechtschreib|tippfehler|punctuat|orthogra"
_INTERPOLATES = r"f-?strings?\b|template (?:string|literal)|interpolat|string format|concatenat"
_CORRECTS = f"fix|correct|korrig|corrig|{_SPELLS}"


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

    @property
    def changes_names(self) -> bool:
        """Whether it may ask for a name that it says to be gone: by itself, or for another one."""
        return self.less or self.renames or self.another_shape or self._has(_OTHER_NAME)

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
    def fewer_names(self) -> bool:
        """Whether it asks for fewer of the things that have names, without saying which."""
        return self._has(_GONE) and self._has(_NAMED_THINGS)

    @property
    def adds(self) -> bool:
        """Whether it asks for something to be added, and begins with that."""
        return bool(re.match(_ADDS, self.instruction, re.IGNORECASE)) and not self._has("instead|rather than|statt")

    @property
    def requires(self) -> bool:
        """Whether it wants something to hold, or an error."""
        return bool(re.match(r"\W*(?:please )?(?:require|assert)\b", self.instruction, re.IGNORECASE))

    @property
    def compares(self) -> bool:
        """Whether it asks for more or less of something, or speaks of numbers."""
        return self._has(
            r"\w{3,}er\b|number|doubl|half|halve|twice|tripl|percent|every|each|second|third|one\b|zero|ten\b"
        )

    @property
    def removes(self) -> bool:
        """Whether it asks for something to be deleted, and begins with that."""
        return bool(re.match(r"\W*(?:please |bitte )*(?:remov|delet|drop\b|get rid)", self.instruction, re.IGNORECASE))

    @property
    def everywhere(self) -> bool:
        """Whether it is about all that is of a kind."""
        return self._has("all\\b|every|each\\b|both\\b|alle\\b|jede|tous|toutes|todos|todas")

    @property
    def annotates(self) -> bool:
        """Whether it asks for types to be written at code that stays."""
        return self._has(_ANNOTATES) and not self.less

    @property
    def sets(self) -> bool:
        """Whether it asks for one thing to have another value."""
        return bool(re.match(_SETS, self.instruction, re.IGNORECASE))

    @property
    def renamed(self) -> tuple[str, str] | None:
        """The old and the new name, where it gives both."""
        found = re.search(_RENAMED, self.instruction, re.IGNORECASE)
        return (found[1], found[2]) if found else None

    @property
    def called(self) -> str:
        """The function that it wants called under a condition, or before or after something else; "" without one."""
        found = re.search(_CALLED, self.instruction, re.IGNORECASE)
        return found[1] if found else ""

    @property
    def renames(self) -> bool:
        """Whether it asks for other names."""
        return self._has(_RENAMES)

    @property
    def another_shape(self) -> bool:
        """Whether it asks for a definition of another kind, which may have other members."""
        return self._has(_OTHER_SHAPE)

    @property
    def comments(self) -> bool:
        """Whether it is about comments and documentation, and maybe about code too."""
        return self._has(_COMMENTS)

    @property
    def comments_alone(self) -> bool:
        """Whether it is about comments and documentation, so that code stays."""
        several = self.less and self._has("and\\b|und\\b|et\\b")
        return self._has(_COMMENTS) and not self._has(_CODE_TOO) and not several

    @property
    def more_than_form(self) -> bool:
        """Whether it asks for something beside the form of code."""
        return self._has("and\\b|then\\b|also|return|raise|throw|print|check|message|f-string|template|string")

    @property
    def form(self) -> bool:
        """Whether it is about the form of lines: blanks, quotes, order, letters."""
        return self._has(_FORM)

    @property
    def fences(self) -> bool:
        """Whether it asks for a block of code in a text."""
        return self._has(_FENCES)

    @property
    def headings(self) -> bool:
        """Whether it asks for headings, or for a document that has some."""
        return self._has(_HEADINGS)

    @property
    def titles(self) -> bool:
        """Whether it is about a title that is there."""
        return self._has("(?:the|this) (?:first |main )?(?:title|heading|headline)\\b")

    @property
    def lists(self) -> bool:
        """Whether it asks for a list or a table, or is about one."""
        return self._has(_LISTS)

    @property
    def more(self) -> bool:
        """Whether it asks for further text."""
        return self._has(_MORE)

    @property
    def translates(self) -> bool:
        """Whether it asks for another natural language."""
        return self._has(_TRANSLATES)

    @property
    def spells(self) -> bool:
        """Whether it asks for mistakes of language to be corrected, in code too."""
        return self._has(_SPELLS)

    @property
    def interpolates(self) -> bool:
        """Whether it asks for strings to be put together otherwise."""
        return self._has(_INTERPOLATES)

    @property
    def corrects(self) -> bool:
        """Whether it asks for mistakes to be corrected, so that most words stay."""
        return self._has(_CORRECTS)
