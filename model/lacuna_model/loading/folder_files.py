"""The JSON files of a folder in Hugging Face's format, each read into the types that Lacuna uses of it."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lacuna_model.core.errors import WeightsError

TOKENIZER = "tokenizer.json"
TOKENIZER_SETTINGS = "tokenizer_config.json"
T = TypeVar("T")


class AddedToken(msgspec.Struct, frozen=True):
    """A token beside those of the vocabulary, in ``tokenizer.json``."""

    content: str
    id: int


class NamedToken(msgspec.Struct, frozen=True):
    """The same in ``tokenizer_config.json``, where the id is its key."""

    content: str


class TokenizerSettings(msgspec.Struct, frozen=True):
    """What Lacuna reads of ``tokenizer_config.json``; the names of tokens may be in either of two forms."""

    added_tokens_decoder: dict[int, NamedToken] = {}
    add_bos_token: bool | None = None
    chat_template: Any = None
    bos_token: str | NamedToken | None = None
    eos_token: str | NamedToken | None = None
    mask_token: str | NamedToken | None = None

    @property
    def added(self) -> dict[str, int]:
        """The ids of the added tokens by name."""
        return {token.content: number for number, token in self.added_tokens_decoder.items()}

    @property
    def names(self) -> dict[str, str]:
        """The names of the special tokens ``bos``, ``eos`` and ``mask`` that it has."""
        said = {"bos": self.bos_token, "eos": self.eos_token, "mask": self.mask_token}
        return {kind: one.content if isinstance(one, NamedToken) else one for kind, one in said.items() if one}


class Added(msgspec.Struct, frozen=True):
    """The added tokens of ``tokenizer.json``."""

    added_tokens: list[AddedToken] = []

    @property
    def added(self) -> dict[str, int]:
        """Their ids by name."""
        return {token.content: token.id for token in self.added_tokens}


def read_json(path: Path, kind: type[T]) -> T:
    """A JSON file; raises WeightsError where it is unreadable or of another form."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path} is not readable ({error})") from error


def added_tokens(folder: Path) -> Added:
    """The added tokens of a folder; none without the file. Raises WeightsError as :func:`read_json`."""
    file = folder / TOKENIZER
    return read_json(file, Added) if file.is_file() else Added()


def tokenizer_settings(folder: Path) -> TokenizerSettings:
    """The settings of a folder's tokenizer; the defaults without the file. Raises WeightsError as :func:`read_json`."""
    file = folder / TOKENIZER_SETTINGS
    return read_json(file, TokenizerSettings) if file.is_file() else TokenizerSettings()
