"""How snippets stand in the stream that the model reads: each below its path, which is a comment of its language."""

from collections.abc import Callable, Iterable

from lacuna_model.core.context import TextTokenizer
from lacuna_model.core.params import Snippet
from lacuna_model.languages.language import Lexicon
from lacuna_model.languages.registry import language_for

_MAX_COUNTS = 4_096


def join(snippets: Iterable[Snippet]) -> str:
    """The text of all snippets, each below its path.

    Measured with the embedded base model on the true next three lines of 24 places (loss a token): in a stream of
    their own 2.03 with comments and 2.06 with its file separators, in front of the text 1.81 with either.
    """
    return "".join(_under_path(snippet.path, snippet.text) for snippet in snippets)


class TokenCounts:
    """How many tokens snippets take in the stream; counted once each while the tokenizer is the same."""

    def __init__(self) -> None:
        self._tokenizer: TextTokenizer | None = None
        self._known: dict[tuple[str, str], int] = {}

    def by(self, tokenizer: TextTokenizer) -> Callable[[Snippet], int]:
        """The function that counts by this tokenizer."""
        if tokenizer is not self._tokenizer or len(self._known) > _MAX_COUNTS:
            self._tokenizer, self._known = tokenizer, {}
        known = self._known

        def count(snippet: Snippet) -> int:
            key = snippet.path, snippet.text
            if key not in known:
                known[key] = len(tokenizer.encode(_under_path(*key)))
            return known[key]

        return count


def comment(text: str, path: str, language: str = "") -> str:
    """A line of text as a comment of the path's language, or of the one named."""
    known = language_for(path, language)
    lexicon = known.lexicon if known else Lexicon(line_comment=(b"#",))
    if lexicon.line_comment:
        return f"{lexicon.line_comment[0].decode()} {text}\n"
    if lexicon.block_comment:
        opening, closing = (mark.decode() for mark in lexicon.block_comment[0])
        return f"{opening} {text.replace(closing, '')} {closing}\n"
    return f"# {text}\n"


def _under_path(path: str, text: str) -> str:
    # One line feed at the end and no more, so that tokens do not depend on what follows and can be counted apart.
    return f"{comment(path, path)}{text.rstrip()}\n"
