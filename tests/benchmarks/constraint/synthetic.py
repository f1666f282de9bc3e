"""Cuts gaps into real files, and simulates models without weights: a noisy oracle of the true fill, or pure noise."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import Region
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.reader import Drafted
from lacuna_model.syntax import Language

Shape = Literal["lines", "tokens"]
UNSURE = 0.2  # probability of the best token in a slot that the model does not know
CANDIDATES = 8
MAX_TRIES = 200


@dataclass(frozen=True, slots=True)
class Case:
    """A file with gaps: its text without them, their regions, and the tokens that were removed."""

    language: Language
    text: bytes
    regions: tuple[Region, ...]
    truths: tuple[tuple[int, ...], ...]


def cut_case(
    text: bytes, language: Language, tokens: TokenText, rng: np.random.Generator, *, gaps: int, slots: int, shape: Shape
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
    text: bytes, tokens: TokenText, rng: np.random.Generator, *, low: int, high: int, slots: int, shape: Shape
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
    """Marginals without a network: the true tokens with some noise, or only noise (``noise`` of 1).

    A noisy slot has a random token on top and the true one below it. With ``foresight`` the model knows only so many
    slots from the frontier on; its best tokens in all later slots are wrong, with a low probability.
    """

    def __init__(
        self,
        truths: Sequence[Sequence[int]],
        tokens: TokenText,
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

    def announce(self, canvases: Sequence[Canvas]) -> None:
        """Does nothing: there are no passes."""

    def withdraw(self) -> None:
        """Does nothing."""

    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """Returns the marginals of every open canvas."""
        return [None if canvas.closed else self._marginals(canvas, gap) for gap, canvas in enumerate(canvases)]

    def drafted(self, canvas: Canvas) -> list[Drafted]:
        """Nothing: no pass verifies a draft."""
        return []

    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Does nothing: there is no cache."""

    def _marginals(self, canvas: Canvas, gap: int) -> Marginals:
        size = len(canvas.slots)
        ids = self._rng.choice(self._alphabet, (size, CANDIDATES)).astype(np.int64)
        top = self._rng.uniform(0.4, 1.0, size)
        if self._noise >= 1:
            ends = self._rng.random(size) < 0.05
            ids[ends, 0] = self._tokens.eog_id
        else:
            truth = [*self._truths[gap], *[self._tokens.eog_id] * size]
            first = min(len(canvas.done), len(self._truths[gap]))
            noisy = self._rng.random(size) < self._noise
            unseen = np.arange(size) >= canvas.frontier + (self._foresight or size)
            noisy |= unseen
            ranks = np.where(noisy, self._rng.integers(1, CANDIDATES, size), 0)
            ids[np.arange(size), ranks] = truth[first : first + size]
            top = np.where(unseen, UNSURE, np.where(noisy, top - 0.2, top))
        decay = np.exp(-np.arange(CANDIDATES - 1))
        rest = (1 - top)[:, None] * decay / decay.sum()
        probability = np.concatenate([top[:, None], rest], axis=1) + 1e-6
        entropy = -(probability * np.log(probability)).sum(axis=1)
        return Marginals(ids, np.log(probability).astype(np.float32), entropy.astype(np.float32))
