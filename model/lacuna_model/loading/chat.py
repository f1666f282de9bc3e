"""Reads a model's own chat template (Jinja, in its GGUF file or folder) and turns messages into tokens with it."""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from lacuna_model.core.errors import RequestError, WeightsError
from lacuna_model.core.params import ChatMessage
from lacuna_model.loading.chat_rendering import COSTLY, Rendered, Task, render
from lacuna_model.loading.checkpoint import added_tokens, tokenizer_settings
from lacuna_model.loading.weights import CHAT_TEMPLATE, GgufReader
from lacuna_model.tokenizer import Tokenizer

# Stands for a message while the template is rendered, so that no message is taken for special tokens.
_MARK = "\ue000{}\ue001"
TEMPLATE_FILE = "chat_template.jinja"
# Sequences of roles whose rendered text is kept: it does not depend on what the messages say.
RENDERED_KEPT = 64


class ChatTemplate:
    """A chat template with the special tokens that it may use: ids by name.

    ``names`` are the template's variables beside the messages: ``bos_token``, ``eos_token``.
    """

    def __init__(self, source: str, specials: dict[str, int], names: dict[str, str] | None = None) -> None:
        self._source = source
        self._specials = specials
        longest_first = sorted(filter(None, specials), key=len, reverse=True)
        self._parts = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._names = names or {}
        self._rendered = lru_cache(RENDERED_KEPT)(self._render)
        self._too_many = math.inf  # messages, for which the template took too much

    def tokens(self, messages: Sequence[ChatMessage], tokenizer: Tokenizer) -> list[int]:
        """The prompt of a chat, up to where the assistant's next message begins.

        Special tokens come from the template alone; what looks like one in a message is read as plain text. Raises
        RequestError where the template refuses the messages, or takes too much time or memory.
        """
        roles = tuple(one.role for one in messages)
        # What took too much is not tried again with as many messages, or more.
        rendered = Rendered(refusal=COSTLY) if len(roles) >= self._too_many else self._rendered(roles)
        if rendered.refusal == COSTLY:
            self._too_many = min(self._too_many, len(roles))
        if rendered.refusal:
            raise RequestError(f"the model's chat template refuses the messages: {rendered.refusal}")
        text = rendered.text
        found: list[int] = []
        for index, one in enumerate(messages):
            before, mark, text = text.partition(_MARK.format(index))
            found += self._with_specials(before, tokenizer)
            found += tokenizer.encode(one.content) if mark else []
        return [*found, *self._with_specials(text, tokenizer)]

    def _render(self, roles: tuple[str, ...]) -> Rendered:
        """The text of a chat of these roles, with a mark for each message, or why there is none."""
        marked = [{"role": role, "content": _MARK.format(index)} for index, role in enumerate(roles)]
        return render(Task(self._source, marked, self._names))

    def _with_specials(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """The tokens of the template's own text."""
        found: list[int] = []
        at = 0
        for match in self._parts.finditer(text):
            found += [*tokenizer.encode(text[at : match.start()]), self._specials[match[0]]]
            at = match.end()
        return [*found, *tokenizer.encode(text[at:])]


def read_chat_template(path: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The chat template of a GGUF file or of a folder in the format of the Hugging Face hub; None without one.

    Raises RequestError where it cannot be read.
    """
    try:
        return (_of_folder if path.is_dir() else _of_file)(path, tokenizer)
    except (OSError, UnicodeDecodeError, WeightsError) as error:
        raise RequestError(f"the model's chat template cannot be read: {error}") from error


def _of_file(path: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    file = GgufReader(path)
    source = file.optional(CHAT_TEMPLATE)
    tokens = tokenizer.vocabulary.tokens
    special = {tokens[i]: i for i in tokenizer.special_ids if tokens[i]}
    ids = {kind: file.optional(f"tokenizer.ggml.{kind}_token_id") for kind in ("bos", "eos")}
    names = {f"{kind}_token": tokens[i] for kind, i in ids.items() if isinstance(i, int) and 0 <= i < len(tokens)}
    return ChatTemplate(source, special, names) if isinstance(source, str) else None


def _of_folder(folder: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    template, settings = folder / TEMPLATE_FILE, tokenizer_settings(folder)
    source = template.read_text(encoding="utf-8") if template.is_file() else settings.chat_template
    names = {f"{kind}_token": token for kind, token in settings.names.items() if kind != "mask"}
    added = added_tokens(folder) | settings.added
    specials = {name: token for name, token in added.items() if 0 <= token < tokenizer.vocab_size}
    return ChatTemplate(source, specials, names) if isinstance(source, str) else None
