"""How many tokens of a suffix have to be read again after typing: fills with few of them beside fills with all.

A context is encoded before some tokens of the prefix were typed, and brought up to date with them. It is then given the
greedy fill of a context that was encoded from nothing: at how many places of that fill is its likeliest token another?
"""

import copy
import time
from collections.abc import Sequence

import msgspec
import numpy as np
import torch
from rich.table import Table
from tests.benchmarks.held_out.cases import Case

from lacuna_model.backends.readers import new_cache, opening
from lacuna_model.core.context import Layout, lay_out
from lacuna_model.core.params import InfillRequest
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim

PREFIX_TOKENS = 600
LEAST_SUFFIX, MAX_SUFFIX = 200, 500
ALL = MAX_SUFFIX + 1
NEAR = (0, 8, 24, 48, ALL)
TYPED = (8, 48)
FILL_TOKENS = 16


class NearFills(msgspec.Struct, frozen=True):
    """Where the model has another likeliest token if ``near`` suffix tokens are read again after ``typed`` tokens.

    ``differing`` counts the places, of all ``places`` in ``fills`` fills; ``changed`` the fills with such a place.
    ``ms`` is the median time from the keystroke to the tokens.
    """

    near: int
    typed: int
    fills: int
    places: int
    differing: int
    changed: int
    ms: float


class SuffixBench:
    """Collects the fills of one model, case by case."""

    def __init__(self, model: LoadedFim) -> None:
        self._model = model
        self._found: dict[tuple[int, int], list[tuple[int, int, float]]] = {}

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
        wanted = _fill(model, context)
        for typed in TYPED:
            early = _context(model)
            early.update(_layout(model, case.request, prefix[:-typed], suffix))
            early.reader.read([early.chain(0)])
            for near in NEAR:
                context = _copy(model, early, near)
                began = time.perf_counter()
                context.update(whole)
                likeliest = _likeliest(model, context, wanted)
                ms = (time.perf_counter() - began) * 1e3
                differing = sum(one != other for one, other in zip(likeliest, wanted, strict=False))
                self._found.setdefault((typed, near), []).append((len(wanted), differing, ms))

    def rows(self) -> list[NearFills]:
        """The figures so far."""
        return [
            NearFills(
                near,
                typed,
                fills=len(own),
                places=sum(places for places, _, _ in own),
                differing=sum(differing for _, differing, _ in own),
                changed=sum(differing > 0 for _, differing, _ in own),
                ms=float(np.median([ms for _, _, ms in own])),
            )
            for (typed, near), own in sorted(self._found.items())
        ]


def _cut(model: LoadedFim, case: Case) -> tuple[list[int], list[int]] | None:
    """The last tokens before the case's first gap and the first ones after it; None if there are too few."""
    text, region = case.request.text.encode(), case.request.regions[0]
    prefix = model.tokenizer.encode(text[: region.start].decode())[-PREFIX_TOKENS:]
    suffix = model.tokenizer.encode(text[region.end :].decode())[:MAX_SUFFIX]
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


def _fill(model: LoadedFim, context: FimContext) -> list[int]:
    """The greedy fill."""
    tokens: list[int] = []
    while len(tokens) < FILL_TOKENS:
        token = _likeliest(model, context, tokens)[-1]
        if token in model.fim.ends:
            break
        tokens.append(token)
    return tokens


def _likeliest(model: LoadedFim, context: FimContext, fill: Sequence[int]) -> list[int]:
    """The likeliest token at every place of ``fill``, and behind it, given the tokens before that place."""
    chain, track = context.chain(0), context.reader.new()
    track.become([model.fim.middle, *fill], sum(len(one.ids) for one in chain))
    states = context.reader.read([[*chain, track]])[track]
    context.reader.drop(track)
    best: list[int] = context.reader.logits(states).argmax(-1).tolist()
    return best


def table(found: Sequence[NearFills]) -> Table:
    """Returns the figures as a table."""
    grid = Table(title=f"Places with another token than with the whole suffix read again ({found[0].fills} fills)")
    for name in ("near tokens", "typed tokens", "differing places", "%", "fills with one", "ms to the tokens"):
        grid.add_column(name, justify="right")
    for one in found:
        share, near = 100 * one.differing / max(one.places, 1), "all" if one.near == ALL else str(one.near)
        places = f"{one.differing} of {one.places}"
        grid.add_row(near, str(one.typed), places, f"{share:.1f}", str(one.changed), f"{one.ms:.0f}")
    return grid
