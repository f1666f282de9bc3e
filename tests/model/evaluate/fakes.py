"""A tokenizer over bytes and a scripted model, for tests of everything above them."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lacuna_model.params import FillStats, InfillRequest, InfillResult


class ByteTokens:
    """Every byte is a token; ``merged`` texts are tokens of their own, the longest match first."""

    def __init__(self, *merged: str) -> None:
        self._texts = [*(bytes([i]) for i in range(256)), *(text.encode() for text in merged), b"", b""]
        self.document_id = len(self._texts) - 2
        self.eog_id = len(self._texts) - 1
        self.special_ids = frozenset((self.document_id, self.eog_id))
        self.vocab_size = len(self._texts)

    def encode(self, text: str) -> list[int]:
        data, ids = text.encode(), []
        order = sorted(range(self.vocab_size - 2), key=lambda i: -len(self._texts[i]))
        while data:
            token = next(i for i in order if data.startswith(self._texts[i]))
            ids.append(token)
            data = data[len(self._texts[token]) :]
        return ids

    def token_bytes(self, token: int) -> bytes:
        return self._texts[token]

    def is_begun(self, data: bytes) -> bool:
        return any(text != data and text.startswith(data) for text in self._texts)

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._texts[token] for token in tokens)


class Scripted:
    """Continues a prompt with what ``script`` says to its text, token by token, then ends the text."""

    def __init__(self, tokens: ByteTokens, script: Callable[[str], str]) -> None:
        self.prompts: list[str] = []
        self._tokens = tokens
        self._script = script
        self._rest: list[int] = []

    def reset(self, tokens: Sequence[int]) -> None:
        assert tokens[0] == self._tokens.document_id
        self.prompts.append(self._tokens.decode_bytes(tokens).decode())
        self._rest = [*self._tokens.encode(self._script(self.prompts[-1])), self._tokens.eog_id]

    def logits(self) -> NDArray[np.float32]:
        row = np.zeros(self._tokens.vocab_size, dtype=np.float32)
        row[self._rest[0]] = 1.0
        return row

    def append(self, token: int) -> None:
        if token == self._rest[0]:
            self._rest.pop(0)


class Canned:
    """A filler that answers every gap of a request by ``answer(text before the first gap, gap index)``."""

    def __init__(self, name: str, answer: Callable[[str, int], str]) -> None:
        self.name = name
        self.requests: list[InfillRequest] = []
        self._answer = answer

    def fill(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        before = request.text.encode()[: request.regions[0].start].decode()
        fills = tuple(self._answer(before, i) for i in range(len(request.regions)))
        tokens = sum(region.max_tokens for region in request.regions)
        return InfillResult("ok", request.text, fills, FillStats(nfe=max(1, tokens // 4), tokens=tokens))
