"""The fields that all bodies honour, whichever service named them first."""

from typing import Annotated

from msgspec import Meta

from lacuna_model.core.params import ChatMessage, Snippet
from lacuna_server.http.shapes.demands import Forms
from lacuna_server.http.shapes.fields import (
    MAX_STOPS,
    Candidates,
    Count,
    Milliseconds,
    Seed,
    Stops,
    Temperature,
)
from lacuna_server.http.shapes.question import Question


class Asked(Forms, frozen=True, kw_only=True):
    """Limits and demands of a request.

    A negative number of tokens means the default, a negative seed any seed. There are at most ``n`` answers, which
    differ. No answer contains one of the ``bad_words``. ``t_max_predict_ms`` is llama.cpp's limit of time.
    """

    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    n_predict: Count | None = None
    min_tokens: Count | None = None
    n: Candidates | None = None
    n_cmpl: Candidates | None = None
    stop: Stops | None = None
    bad_words: Annotated[list[str], Meta(max_length=MAX_STOPS)] | None = None
    temperature: Temperature | None = None
    seed: Seed | None = None
    random_seed: Seed | None = None
    t_max_predict_ms: Milliseconds | None = None
    stream: bool | None = None

    def question(
        self,
        before: str,
        after: str = "",
        *,
        path: str = "",
        snippets: tuple[Snippet, ...] = (),
        chat: tuple[ChatMessage, ...] = (),
    ) -> Question:
        """Return the question for a gap, or for the answer to a chat. Raises FieldError as ``form`` does."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        return Question(
            before=before,
            after=after,
            stop=stop,
            max_tokens=self.limit(),
            min_tokens=max(self.min_tokens or 0, 0),
            candidates=self.n or self.n_cmpl or 1,
            temperature=self.temperature or 0.0,
            seed=abs(self.seed or self.random_seed or 0),
            patience_ms=self.t_max_predict_ms,
            path=path,
            snippets=snippets,
            chat=chat,
            form=self.form(),
            bad_words=tuple(filter(None, self.bad_words or ())),
        )

    def limit(self) -> int | None:
        """Return the wanted number of tokens by its most exact name; None means the default."""
        given = (self.max_completion_tokens, self.max_tokens, self.n_predict)
        wanted = next((count for count in given if count is not None), -1)
        return wanted if wanted >= 0 else None
