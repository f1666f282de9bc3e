"""Reads a model's own chat template (Jinja, in its GGUF file or folder) and turns messages into tokens with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import ChatMessage
from lacuna_model.loading.gguf_reader import GgufReader
from lacuna_model.tokens.tokenizer import Tokenizer

# Stands for a message while the template is rendered, so that no message is taken for special tokens.
_MARK = "\ue000{}\ue001"
FOLDER_FILES = ("chat_template.jinja", "tokenizer_config.json", "tokenizer.json")


class ChatTemplate:
    """A chat template with the special tokens that it may use: ids by name.

    ``names`` are the template's variables beside the messages: ``bos_token``, ``eos_token``.
    """

    def __init__(self, source: str, specials: dict[str, int], names: dict[str, str] | None = None) -> None:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(source)
        self._specials = dict(sorted(specials.items(), key=lambda named: -len(named[0])))
        self._names = names or {}

    def tokens(self, messages: Sequence[ChatMessage], tokenizer: Tokenizer) -> list[int]:
        """The prompt of a chat, up to where the assistant's next message begins.

        Special tokens come from the template alone; what looks like one in a message is read as plain text. Raises
        RequestError where the template refuses the messages.
        """
        marked = [{"role": one.role, "content": _MARK.format(index)} for index, one in enumerate(messages)]
        try:
            text = self._template.render(messages=marked, add_generation_prompt=True, tools=None, **self._names)
        except TemplateError as error:
            raise RequestError(f"the model's chat template refuses the messages: {error}") from error
        found: list[int] = []
        for index, one in enumerate(messages):
            before, mark, text = text.partition(_MARK.format(index))
            found += self._with_specials(before, tokenizer)
            found += tokenizer.encode(one.content) if mark else []
        return [*found, *self._with_specials(text, tokenizer)]

    def _with_specials(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """The tokens of the template's own text."""
        at, name = min(((place, name) for name in self._specials if (place := text.find(name)) >= 0), default=(-1, ""))
        if at < 0:
            return tokenizer.encode(text) if text else []
        rest = self._with_specials(text[at + len(name) :], tokenizer)
        return [*(tokenizer.encode(text[:at]) if at else []), self._specials[name], *rest]


def _refuse(message: str) -> None:
    raise TemplateError(message)


def read_chat_template(path: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The chat template of a GGUF file or of a folder in the format of the Hugging Face hub; None without one."""
    if path.is_dir():
        return _of_folder(path)
    file = GgufReader(path)
    source = file.optional("tokenizer.chat_template")
    tokens = tokenizer.vocabulary.tokens
    special = {tokens[i]: i for i in tokenizer.special_ids if tokens[i]}
    names = {
        f"{kind}_token": tokens[i]
        for kind in ("bos", "eos")
        if isinstance(i := file.optional(f"tokenizer.ggml.{kind}_token_id"), int) and i < len(tokens)
    }
    return ChatTemplate(source, special, names) if isinstance(source, str) else None


def _of_folder(folder: Path) -> ChatTemplate | None:
    template, settings, whole = (folder / name for name in FOLDER_FILES)
    about = _json(settings)
    source = template.read_text(encoding="utf-8") if template.is_file() else about.get("chat_template")
    added = {token["content"]: int(token["id"]) for token in _json(whole).get("added_tokens", ())}
    added |= {token["content"]: int(i) for i, token in about.get("added_tokens_decoder", {}).items()}
    named = {name: about[name] for name in ("bos_token", "eos_token") if isinstance(about.get(name), str)}
    return ChatTemplate(source, added, named) if isinstance(source, str) else None


def _json(path: Path) -> dict[str, Any]:
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.is_file() else {}
