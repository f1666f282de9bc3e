"""How many tokens of a suffix have to be read again after typing: fills with few of them beside fills with all.

A context is encoded before some tokens of the prefix were typed, and brought up to date with them. The greedy fill is
then compared with the fill in a context that was encoded from nothing. Where all tokens are read again, what differs is
rounding alone: it is the least that can be reached.
"""

import copy
import time
from collections.abc import Sequence

import msgspec
import numpy as np
import torch
from rich.table import Table

from lacuna_model.backends.readers import new_cache, opening
from lacuna_model.core.context import Layout, lay_out
from lacuna_model.core.params import InfillRequest
from lacuna_model.evaluate.held_out.cases import Case
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim

PREFIX_TOKENS = 600
LEAST_SUFFIX, MOST_SUFFIX = 200, 500
ALL = MOST_SUFFIX + 1
NEAR = (0, 8, 24, 48, ALL)
TYPED = (8, 48)
FILL_TOKENS = 16


class NearFills(msgspec.Struct, frozen=True):
    """How many of the fills differ where ``near`` suffix tokens are read again after ``typed`` tokens.

    ``ms`` is the median time from the keystroke to the first token.
    """

    near: int
    typed: int
    fills: int
    differing: int
    ms: float


class SuffixBench:
    """Collects the fills of one model, case by case."""

    def __init__(self, model: LoadedFim) -> None:
        self._model = model
        self._found: dict[tuple[int, int], list[tuple[bool, float]]] = {}

    @torch.inference_mode()
    def add(self, case: Case) -> None:
        """Measures a case; one whose prefix or suffix is too short is left out."""
        model, parts = self._model, _cut(self._model, case)
        if parts is None:
            return
        prefix, suffix = parts
        whole = _layout(model, case.request, prefix, suffix)
        context = _context(model)
        context.update(whole)
        wanted, _ = _fill(model, context)
        for typed in TYPED:
            early = _context(model)
            early.update(_layout(model, case.request, prefix[:-typed], suffix))
            early.reader.read([early.chain(0)])
            for near in NEAR:
                context = _copy(model, early, near)
                began = time.perf_counter()
                context.update(whole)
                fill, first = _fill(model, context)
                self._found.setdefault((typed, near), []).append((fill != wanted, (first - began) * 1e3))

    def rows(self) -> list[NearFills]:
        """The figures so far."""
        return [
            NearFills(near, typed, len(own), sum(one for one, _ in own), float(np.median([ms for _, ms in own])))
            for (typed, near), own in sorted(self._found.items())
        ]


def _cut(model: LoadedFim, case: Case) -> tuple[list[int], list[int]] | None:
    """The last tokens before the case's first gap and the first ones after it; None if there are too few."""
    text, region = case.request.text.encode(), case.request.regions[0]
    prefix = model.tokenizer.encode(text[: region.start].decode())[-PREFIX_TOKENS:]
    suffix = model.tokenizer.encode(text[region.end :].decode())[:MOST_SUFFIX]
    return (prefix, suffix) if len(suffix) >= LEAST_SUFFIX and len(prefix) > 2 * max(TYPED) else None


def _layout(model: LoadedFim, request: InfillRequest, prefix: Sequence[int], suffix: Sequence[int]) -> Layout:
    texts = [model.tokenizer.decode(ids) for ids in (prefix, suffix)]
    return lay_out(texts, model.tokenizer, opening(model, request))


def _context(model: LoadedFim) -> FimContext:
    context = new_cache(model)
    assert isinstance(context, FimContext)
    return context


def _copy(model: LoadedFim, context: FimContext, near: int) -> FimContext:
    """The same state of a document, with its own keys and values and another number of near tokens."""
    shared = (model.transformer, model.tokenizer)
    copied = copy.deepcopy(context, {id(one): one for one in shared})
    copied.near = near
    return copied


def _fill(model: LoadedFim, context: FimContext) -> tuple[list[int], float]:
    """The greedy fill, and the instant (``time.perf_counter``) of its first token."""
    chain, track = context.chain(0), context.reader.new()
    place, first = sum(len(one.ids) for one in chain), 0.0
    tokens: list[int] = []
    while len(tokens) < FILL_TOKENS:
        track.become([model.fim.middle, *tokens], place)
        logits = context.reader.logits(context.reader.read([[*chain, track]])[track])[-1]
        first = first or time.perf_counter()
        token = int(logits.argmax())
        if token in model.fim.ends:
            break
        tokens.append(token)
    context.reader.drop(track)
    return tokens, first


def table(found: Sequence[NearFills]) -> Table:
    """Returns the figures as a table."""
    grid = Table(title=f"Fills that differ from those with the whole suffix read again ({found[0].fills} fills)")
    for name in ("near tokens", "typed tokens", "differing", "%", "ms to the first token"):
        grid.add_column(name, justify="right")
    for one in found:
        share = 100 * one.differing / one.fills
        grid.add_row(
            "all" if one.near == ALL else str(one.near),
            str(one.typed),
            str(one.differing),
            f"{share:.1f}",
            f"{one.ms:.0f}",
        )
    return grid
