"""The sample files, and a small tokenizer that is trained on them."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lacuna_model.syntax import Language, language_for

DATA = Path(__file__).parents[2] / "data" / "syntax"


class SmallTokens:
    """Byte-level BPE of 1,200 tokens, trained on the sample files; token 0 is end-of-gap."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._tokenizer = Tokenizer(models.BPE())
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.decoder = decoders.ByteLevel()
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = trainers.BpeTrainer(
            vocab_size=1200, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
        )
        self._tokenizer.train_from_iterator(texts, trainer)
        to_byte = _byte_of_character()
        pieces = {index: piece for piece, index in self._tokenizer.get_vocab().items()}
        self.eog_id = 0
        self.vocab_size = len(pieces)
        self._bytes = [b""] + [bytes(to_byte[mark] for mark in pieces[i]) for i in range(1, self.vocab_size)]

    def token_bytes(self, token: int) -> bytes:
        return self._bytes[token]

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._bytes[token] for token in tokens)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _byte_of_character() -> dict[str, int]:
    """The 256 bytes by the printable characters that GPT-2 writes for them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [value for value in range(256) if value not in printable]
    return {chr(value): value for value in printable} | {chr(256 + i): value for i, value in enumerate(hidden)}


class Samples(dict[str, tuple[Language, bytes]]):
    """Sample files by the name of their language; hypothesis prints no more of them than this."""

    def __repr__(self) -> str:
        return "samples"


@pytest.fixture(scope="session")
def samples() -> dict[str, tuple[Language, bytes]]:
    """Every sample file by the name of its language."""
    found = Samples()
    for path in sorted(DATA.iterdir()):
        language = language_for(path.name)
        assert language is not None
        found[language.name] = (language, path.read_bytes())
    return found


@pytest.fixture(scope="session")
def tokens(samples: dict[str, tuple[Language, bytes]]) -> SmallTokens:
    return SmallTokens([text.decode() for _, text in samples.values()])
