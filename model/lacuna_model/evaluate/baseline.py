"""The base model left to right, greedy: the baselines that a two-sided engine has to beat."""

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from lacuna_model.constraint import TokenText
from lacuna_model.context import TextTokenizer, heal
from lacuna_model.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_model.stopping import StopRule, trim_overlap


class NextToken(Protocol):
    """A left-to-right model with a KV cache."""

    def reset(self, tokens: Sequence[int]) -> None:
        """Encode a prompt, reusing the longest prefix it shares with what was encoded before."""
        ...

    def logits(self) -> NDArray[np.float32]:
        """Next-token logits [vocab] after all tokens so far."""
        ...

    def append(self, token: int) -> None:
        """Let one more token follow."""
        ...


class StreamText(TokenText, TextTokenizer, Protocol):
    """A tokenizer that also knows the tokens that are no text."""

    special_ids: frozenset[int]


# Builds the text that a left-to-right model continues from what stands before and after the gap, and the language.
Layout = Callable[[str, str, str], str]


def before_only(before: str, after: str, language: str) -> str:
    """The text before the gap and nothing else."""
    return before


def after_as_comment(before: str, after: str, language: str) -> str:
    """What follows the gap as a comment on top, then the text before it; ``#`` comments in Python, else ``//``."""
    if not after.strip():
        return before
    mark = "#" if language == "python" else "//"
    quoted = "".join(f"{mark} {line}\n" for line in after.strip("\n").split("\n"))
    return f"{mark} The code below is followed by:\n{quoted}\n{before}"


class HealedStart:
    """Finds the tokens that may begin a fill when the prompt's last token was taken back (token healing).

    A prompt that ends in the middle of what would be one token ("\\n" before an indented line) leads a model where
    training never took it. So the last token is given back as bytes, and the next tokens have to spell them: the same
    healing that the engine's own canvas has.
    """

    def __init__(self, tokens: StreamText) -> None:
        text = ((tokens.token_bytes(i), i) for i in range(tokens.vocab_size) if i not in tokens.special_ids)
        self._sorted = sorted((data, i) for data, i in text if data)
        self._keys = [data for data, _ in self._sorted]

    def candidates(self, pending: bytes) -> NDArray[np.int64]:
        """Ids of the tokens that start with ``pending`` or are the beginning of it."""
        first = bisect_left(self._keys, pending)
        last = bisect_left(self._keys, pending + b"\xff" * 8, lo=first)
        ids = [i for _, i in self._sorted[first:last]]
        for size in range(1, len(pending)):
            at = bisect_left(self._keys, pending[:size])
            if at < len(self._keys) and self._keys[at] == pending[:size]:
                ids.append(self._sorted[at][1])
        return np.array(ids, dtype=np.int64)


class LeftToRight:
    """Fills gaps by continuing the text before each, greedily; satisfies the runner's ``Filler``.

    Several gaps are filled in order, each with the earlier ones in place. ``context_tokens`` bounds the prompt: its
    end is kept, since that is where the gap is.
    """

    def __init__(
        self, name: str, model: NextToken, tokens: StreamText, layout: Layout, *, context_tokens: int = 1536
    ) -> None:
        self.name = name
        self._model = model
        self._tokens = tokens
        self._layout = layout
        self._context_tokens = context_tokens
        self._healed = HealedStart(tokens)

    def fill(self, request: InfillRequest) -> InfillResult:
        """One fill per region of the request; its decode options do not apply."""
        source = request.text.encode()
        regions = request.regions
        started = time.perf_counter()
        text, position, fills, stats = b"", 0, [], FillStats()
        for index, region in enumerate(regions):
            end = regions[index + 1].start if index + 1 < len(regions) else len(source)
            text += source[position : region.start]
            after = source[region.end : end].decode()
            fill, stats = self._fill_one(text.decode(), after, request.language, region, stats)
            fills.append(fill)
            text += fill.encode()
            position = region.end
        document = (text + source[position:]).decode()
        elapsed = (time.perf_counter() - started) * 1000
        return InfillResult("ok", document, tuple(fills), msgspec.structs.replace(stats, ms=elapsed))

    def _fill_one(
        self, before: str, after: str, language: str, region: Region, stats: FillStats
    ) -> tuple[str, FillStats]:
        rule = StopRule.between(before, after)
        prompt, pending = heal(self._layout(before, after, language), self._tokens)
        prompt = [self._tokens.document_id, *prompt[-self._context_tokens :]]
        started = time.perf_counter()
        self._model.reset(prompt)
        encode_ms = (time.perf_counter() - started) * 1000
        skip, data, fill, nfe, tokens = len(pending), b"", None, 0, 0
        while fill is None:
            token = self._next(pending)
            nfe += 1
            if token not in self._tokens.special_ids:
                tokens += 1
                piece = self._tokens.token_bytes(token)
                data, pending = data + piece, pending[len(piece) :]
            final = token in self._tokens.special_ids or tokens >= region.max_tokens
            fill = rule.end(data[skip:].decode("utf-8", errors="ignore"), final=final)
            if fill is None:
                self._model.append(token)
        fill = trim_overlap(fill, after)
        total = FillStats(
            nfe=stats.nfe + nfe,
            base_nfe=stats.base_nfe + nfe,
            steps=stats.steps + nfe,
            tokens=stats.tokens + len(self._tokens.encode(fill)),
            context_tokens=stats.context_tokens + len(prompt),
            encode_ms=stats.encode_ms + encode_ms,
        )
        return fill, total

    def _next(self, pending: bytes) -> int:
        logits = self._model.logits()
        if not pending:
            return int(logits.argmax())
        allowed = self._healed.candidates(pending)
        return int(allowed[logits[allowed].argmax()])
