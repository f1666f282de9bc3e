"""Byte-level BPE over plain text, built from a GGUF file's metadata; its ids equal llama.cpp's."""

import hashlib
from collections.abc import Sequence
from functools import cached_property

import msgspec
from tokenizers import Tokenizer as BpeTokenizer
from tokenizers import models, pre_tokenizers


class Vocabulary(msgspec.Struct, frozen=True):
    """What a GGUF file says of its tokenizer: token strings by id, merges in order, special ids."""

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    special_ids: frozenset[int]
    document_id: int
    eog_id: int


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for every byte (openai/gpt-2, ``encoder.py``), as character -> byte."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    moved = [byte for byte in range(256) if byte not in set(kept)]
    alphabet = {chr(byte): byte for byte in kept}
    alphabet.update({chr(256 + i): byte for i, byte in enumerate(moved)})
    return alphabet


class Tokenizer:
    """Turns text into token ids and back, byte for byte.

    Special tokens are never produced from text, so a file that holds ``<|im_end|>`` is read as what it is.
    ``document_id`` opens every stream, ``eog_id`` closes a canvas (end-of-gap).
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.document_id = vocabulary.document_id
        self.eog_id = vocabulary.eog_id
        self.special_ids = vocabulary.special_ids
        self.vocab_size = len(vocabulary.tokens)
        self._vocabulary = vocabulary
        alphabet = _byte_alphabet()
        self._bytes = [
            b"" if i in vocabulary.special_ids else bytes(alphabet[c] for c in token)
            for i, token in enumerate(vocabulary.tokens)
        ]
        ids = {token: i for i, token in enumerate(vocabulary.tokens)}
        self._bpe = BpeTokenizer(models.BPE(vocab=ids, merges=list(vocabulary.merges)))
        # llama.cpp's "smollm" pre-tokenizer: single digits first, then GPT-2's pattern.
        self._bpe.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ids: list[int] = self._bpe.encode(text, add_special_tokens=False).ids
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of several texts, in parallel."""
        return [encoding.ids for encoding in self._bpe.encode_batch_fast(list(texts), add_special_tokens=False)]

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; special tokens have none."""
        return self._bytes[token]

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of a run of tokens."""
        return b"".join(map(self._bytes.__getitem__, tokens))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a run of tokens; a cut UTF-8 sequence shows as U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", errors="replace")

    @cached_property
    def fingerprint(self) -> str:
        """A digest of vocabulary and merges: shards and indexes of another tokenizer are refused by it."""
        digest = hashlib.sha256()
        for token in self._vocabulary.tokens:
            digest.update(token.encode() + b"\0")
        for left, right in self._vocabulary.merges:
            digest.update(f"{left} {right}\0".encode())
        return digest.hexdigest()[:16]
