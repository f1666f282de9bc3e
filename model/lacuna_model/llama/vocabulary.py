"""The tokens of a model that libllama has opened, and its own way to split text, whatever the kind of tokenizer."""

import ctypes
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from lacuna_model.core.errors import OtherKindError, WeightsError
from lacuna_model.llama.library import Library
from lacuna_model.loading.gguf_reader import GgufReader
from lacuna_model.loading.gguf_vocabulary import read_vocabulary, vocabulary_of
from lacuna_model.tokens.tokenizer import Tokenizer, Vocabulary

# Attributes of tokens that are not text (``llama_token_attr``): unknown, unused, control.
_NO_TEXT = 1 | 2 | 8
_LONGEST_PIECE = 4096
# Is put before a text, and taken away again: the space before the first word is then before this.
_FIRST = "\n"


class LlamaTokenizer(Tokenizer):
    """A tokenizer of any kind that libllama knows."""

    def __init__(self, library: Library, vocab: int, vocabulary: Vocabulary) -> None:
        self._library, self._vocab = library, vocab
        self.document_id, self.eog_id = vocabulary.document_id, vocabulary.eog_id
        self.special_ids, self.fim = vocabulary.special_ids, vocabulary.fim
        self.vocab_size = len(vocabulary.tokens)
        self.vocabulary = vocabulary
        self._bytes = [b"" if i in self.special_ids else self._piece(i) for i in range(self.vocab_size)]
        names = (vocabulary.tokens[i] for i in sorted(self.special_ids))
        self._names = re.compile("|".join(re.escape(name) for name in names if len(name) > 1) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ids = self._split(text)
        if self.special_ids.isdisjoint(ids):
            return ids
        # Some files let the library take a special token's name in a text for the token: the name is cut.
        cuts = [0, *(match.start() + 1 for match in self._names.finditer(text)), len(text)]
        return [
            token
            for first, end in pairwise(cuts)
            for token in self._split(text[first:end])
            if token not in self.special_ids
        ]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of several texts."""
        return [self.encode(text) for text in texts]

    def _split(self, text: str) -> list[int]:
        """The tokens of exactly this text: some models have a space put before the first word."""
        if not self._adds_space or not text:
            return self._plain(text)
        ids, begun = self._plain(_FIRST + text), b""
        for count, token in enumerate(ids, 1):
            begun += self._bytes[token]
            if begun == b" " + _FIRST.encode():
                return ids[count:]
        return self._plain(text)  # its first token is one with what was put before it

    @cached_property
    def _adds_space(self) -> bool:
        return self.decode_bytes(self._plain("x")) == b" x"

    def _plain(self, text: str) -> list[int]:
        data = text.encode("utf-8", errors="replace")
        most = len(data) + 2
        found = (ctypes.c_int32 * most)()
        count = self._library("tokenize", self._vocab, data, len(data), found, most, False, False)
        if count < 0:
            raise WeightsError("libllama cannot split a text into tokens")
        return list(found[:count])

    def _piece(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(_LONGEST_PIECE)
        length = self._library("token_to_piece", self._vocab, token, buffer, _LONGEST_PIECE, 0, False)
        return buffer.raw[: max(length, 0)]


def tokenizer_of(file: GgufReader, library: Library, vocab: int) -> Tokenizer:
    """The tokenizer of an opened model: ours where it knows the kind, or libllama's."""
    try:
        return Tokenizer(read_vocabulary(file))
    except OtherKindError:
        tokens = file.texts("tokenizer.ggml.tokens")
        if len(tokens) != library("vocab_n_tokens", vocab):
            raise WeightsError(f"the tokenizer of {file.path} is damaged; fetch the file again") from None
        special = {i for i in range(len(tokens)) if library("vocab_get_attr", vocab, i) & _NO_TEXT}
        pre = str(file.optional("tokenizer.ggml.pre") or file.optional("tokenizer.ggml.model"))
        return LlamaTokenizer(library, vocab, vocabulary_of(file, tokens, special, pre))
