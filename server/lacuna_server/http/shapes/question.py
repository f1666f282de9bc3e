"""What a client asks for, whatever the shape of its request: one gap in a text, and where a fill stops."""

import re
from dataclasses import dataclass

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region, Snippet

DEFAULT_TOKENS = Region(0, 0).max_tokens
# A fill is no longer than this, whatever a client asks for: their defaults go up to 4096, meant for other models.
MAX_TOKENS = 256

# Some clients say in a comment on the first line what language follows (minuet: "# language: python").
_LANGUAGE_COMMENT = re.compile(r"\W{0,8}language: ?([\w+#]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A gap between ``before`` and ``after``.

    A fill ends before the first of the ``stop`` strings. ``max_tokens`` None means the default. ``patience_ms`` is
    llama.cpp's time limit: it counts from the first step on, and ends a fill only once that has a whole line (None: no
    limit).
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

    @property
    def limit(self) -> int:
        """How many tokens a fill may have."""
        return DEFAULT_TOKENS if self.max_tokens is None else min(self.max_tokens, MAX_TOKENS)

    @property
    def is_warm_up(self) -> bool:
        """Whether no fill is wanted at all.

        Clients send such requests to have their ring of chunks cached. There is nothing to gain from it here, as other
        files are a stream of their own, and running it would drop the open document from the cache.
        """
        return self.max_tokens == 0

    def request(self) -> InfillRequest:
        """The question as the engine takes it."""
        at = len(self.before.encode())
        region = Region(
            at,
            at,
            max_tokens=self.limit,
            min_tokens=min(self.min_tokens, self.limit),
            single_line="\n" in self.stop,
        )
        return InfillRequest(
            self.before + self.after,
            (region,),
            candidates=self.candidates,
            path=self.path,
            language=self.language or _language_comment(self.before),
            snippets=self.snippets,
            options=DecodeOptions(temperature=self.temperature, seed=self.seed),
        )


def _language_comment(text: str) -> str:
    found = _LANGUAGE_COMMENT.match(text)
    return found[1] if found else ""
