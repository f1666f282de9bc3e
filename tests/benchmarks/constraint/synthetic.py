"""Cuts gaps into real files, and simulates models without weights: a noisy oracle of the true fill, or pure noise."""

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lacuna_model.core.constraint import Run
from lacuna_model.core.params import Region
from lacuna_model.decode.fill import Drafted, Fill
from lacuna_model.syntax import Language
from lacuna_model.tokenizer import Tokenizer

Shape = Literal["lines", "tokens"]
CANDIDATES = 8
MAX_TRIES = 200


@dataclass(frozen=True, slots=True)
class Case:
    """A file with gaps: its text without them, their regions, the tokens that were removed, and what ails the file."""

    language: Language
    text: bytes
    regions: tuple[Region, ...]
    truths: tuple[tuple[int, ...], ...]
    state: str = "clean"


def cut_case(
    text: bytes, language: Language, tokens: Tokenizer, rng: np.random.Generator, *, gaps: int, slots: int, shape: Shape
) -> Case | None:
    """Returns a case with ``gaps`` gaps of ``slots`` tokens, or of whole lines of about that size.

    Gaps of shape ``tokens`` start and end anywhere. Returns None if the text has no such gaps.
    """
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for index in range(gaps):
        low, high = len(text) * index // gaps, len(text) * (index + 1) // gaps
        gap = _find_gap(text, tokens, rng, low=low, high=high, slots=slots, shape=shape)
        if gap is None:
            return None
        found.append(gap)
    pieces, regions, offset, size = [], [], 0, 0
    for start, end, truth in found:
        pieces.append(text[offset:start])
        size += start - offset
        regions.append(Region(size, size, max_tokens=max(len(truth), slots)))
        offset = end
    pieces.append(text[offset:])
    return Case(language, b"".join(pieces), tuple(regions), tuple(truth for _, _, truth in found))


def _find_gap(
    text: bytes, tokens: Tokenizer, rng: np.random.Generator, *, low: int, high: int, slots: int, shape: Shape
) -> tuple[int, int, tuple[int, ...]] | None:
    for _ in range(MAX_TRIES):
        start = int(rng.integers(low, max(high - 8 * slots, low + 1)))
        stop = min(start + 12 * slots + 200, high)
        if shape == "lines":
            lines = [match.start() for match in re.finditer(rb"(?<=\n)[ \t]*\S", text[start:stop])]
            ends = [match.start() for match in re.finditer(rb"\n", text[start:stop])]
            if not lines or not ends or ends[-1] <= lines[0]:
                continue
            start, stop = start + lines[0], start + next((end for end in ends if end > lines[0] + 3 * slots), ends[-1])
        try:
            ids = tuple(tokens.encode(text[start:stop].decode()))
        except UnicodeDecodeError:
            continue
        ids = ids if shape == "lines" else ids[:slots]
        end = start + len(tokens.decode_bytes(ids))
        whole = tokens.decode_bytes(ids) == text[start:end] and _is_whole(text, end)
        if ids and whole and len(ids) <= 2 * slots and end <= high:
            return start, end, ids
    return None


def _is_whole(text: bytes, end: int) -> bool:
    """Whether a cut at byte ``end`` splits no character."""
    return end >= len(text) or text[end] & 0xC0 != 0x80


class SyntheticModel:
    """Writes without a network: the true tokens with some noise, or only noise (``noise`` of 1).

    A noisy place has a random token on top and the true one below it. With ``foresight`` the model writes only so many
    tokens at once; else as many as the fill may have.
    """

    passes = 0

    def __init__(
        self,
        truths: Sequence[Sequence[int]],
        tokens: Tokenizer,
        rng: np.random.Generator,
        *,
        noise: float,
        foresight: int = 0,
    ) -> None:
        self._truths = truths
        self._tokens = tokens
        self._rng = rng
        self._noise = noise
        self._foresight = foresight
        self._alphabet = np.array([token for token in range(tokens.vocab_size) if tokens.token_bytes(token)])

    def announcing(self, fills: Sequence[Fill]) -> Generator[None, None, None]:
        """Does nothing: there are no passes."""
        yield from ()

    def going_ahead(self, fills: Sequence[Fill], runs: Sequence[Run | None]) -> Iterable[None]:
        """Does nothing: there are no passes."""
        return ()

    def withdraw(self) -> None:
        """Does nothing."""

    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """Returns the run of every open fill."""
        return [self._run(fill) if fill.is_open else None for fill in fills]

    def drafted(self, fill: Fill) -> list[Drafted]:
        """Nothing: no pass verifies a draft."""
        return []

    def _run(self, fill: Fill) -> Run:
        first, end = len(fill.tokens), self._tokens.eog_id
        size = min(fill.most - first, self._foresight or fill.most)
        ids = self._rng.choice(self._alphabet, (size, CANDIDATES)).astype(np.int64)
        top = self._rng.uniform(0.4, 1.0, size)
        if self._noise >= 1:
            ids[self._rng.random(size) < 0.05, 0] = end
        else:
            truth = [*self._truths[fill.gap.index], *[end] * fill.most]
            noisy = self._rng.random(size) < self._noise
            ranks = np.where(noisy, self._rng.integers(1, CANDIDATES, size), 0)
            ids[np.arange(size), ranks] = truth[first : first + size]
            top = np.where(noisy, top - 0.2, top)
        decay = np.exp(-np.arange(CANDIDATES - 1))
        rest = (1 - top)[:, None] * decay / decay.sum()
        probability = np.concatenate([top[:, None], rest], axis=1) + 1e-6
        run = Run(ids, np.log(probability).astype(np.float32))
        return run.part(0, run.tokens.index(end) + 1) if end in run.tokens else run
