"""A client's question, independent of the shape of its request: one gap in a text, and the limits of a fill."""

import re
from dataclasses import dataclass

from lacuna_model.core.params import AnswerChat, ChatMessage, DecodeOptions, FillGaps, InfillRequest, Region, Snippet
from lacuna_server.http.shapes.demands import Form

DEFAULT_TOKENS = Region(0, 0).max_tokens
# The longest fill, whatever a client asks for: clients' defaults of up to 4096 tokens are meant for other models.
MAX_TOKENS = 256
# The answers of a chat, and those that end with their form, by default and at most.
CHAT_TOKENS, MAX_CHAT_TOKENS = 512, 2048

# Some clients name the language in a comment on the first line (minuet: "# language: python").
_LANGUAGE_COMMENT = re.compile(r"\W{0,8}language: ?([\w+#]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A gap between ``before`` and ``after``.

    A fill ends before the first of the ``stop`` strings. ``max_tokens`` None means the default. ``patience_ms`` is
    llama.cpp's time limit (None: no limit): it counts from the first step, and ends a fill only once the fill has a
    complete line. With a ``chat`` there is no gap: the fill answers its messages. A fill has the ``form``, and contains
    none of the ``bad_words``.
    """

    before: str
    after: str = ""
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    min_tokens: int = 0
    candidates: int = 1
    temperature: float = 0.0
    seed: int = 0
    patience_ms: float | None = None
    path: str = ""
    language: str = ""
    snippets: tuple[Snippet, ...] = ()
    chat: tuple[ChatMessage, ...] = ()
    form: Form | None = None
    bad_words: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        """The most tokens that a fill may have."""
        if self.chat or self.form:
            return CHAT_TOKENS if self.max_tokens is None else min(self.max_tokens, MAX_CHAT_TOKENS)
        return DEFAULT_TOKENS if self.max_tokens is None else min(self.max_tokens, MAX_TOKENS)

    @property
    def is_warm_up(self) -> bool:
        """Whether the client wants no fill at all.

        Clients send such requests to have their ring of chunks cached. Here this gains nothing, because other files
        are encoded separately, and it would drop the open document from the cache.
        """
        return self.max_tokens == 0

    def request(self) -> InfillRequest:
        """Return the engine's request for the question."""
        options = DecodeOptions(temperature=self.temperature, seed=self.seed)
        at = len(self.before.encode())
        region = Region(
            at,
            at,
            max_tokens=self.limit,
            min_tokens=min(self.min_tokens, self.limit),
            single_line="\n" in self.stop,
            regex=self.form.regex if self.form else "",
            json_schema=self.form.json_schema if self.form else "",
            must_not_contain=self.bad_words,
        )
        return InfillRequest(
            self.before + self.after,
            (region,),
            task=AnswerChat(self.chat, self.candidates) if self.chat else FillGaps(self.candidates),
            path=self.path,
            language=self.language or _language_comment(self.before),
            snippets=self.snippets,
            options=options,
        )


def _language_comment(text: str) -> str:
    found = _LANGUAGE_COMMENT.match(text)
    return found[1] if found else ""
