"""The engines that an evaluation compares, by name: ours and the base model left to right, all of one loaded model."""

from collections.abc import Callable, Mapping

import msgspec

from lacuna_model.engine import Engine
from lacuna_model.evaluate.base_stream import BaseStream
from lacuna_model.evaluate.baseline import Layout, LeftToRight, after_as_comment, before_only
from lacuna_model.evaluate.runner import Filler
from lacuna_model.loader import LoadedModel
from lacuna_model.params import DecodeOptions, InfillRequest, InfillResult
from lacuna_model.readers import Loaded

# How many candidates the editor asks for on request, and so the engine that shows what they bring.
CANDIDATES = 3
# What an evaluation compares where nobody says; the others show what the constraint does, and what candidates bring.
COMPARED = ("lacuna", "base-both-sides", "base-left")
# What the number of steps does to the fills: from one slot a step to everything in one pass.
STEPS: Mapping[str, DecodeOptions] = {
    "lacuna: one slot a step": DecodeOptions(schedule="single"),
    "lacuna: 1 nat": DecodeOptions(entropy_bound=1.0),
    "lacuna: 3 nats": DecodeOptions(entropy_bound=3.0),
    "lacuna: one pass": DecodeOptions(steps=1),
}


class EngineFiller:
    """Our engine under evaluation: the likeliest of ``candidates``; ``options`` stand in for those of every request."""

    def __init__(
        self, engine: Engine, *, name: str = "lacuna", options: DecodeOptions | None = None, candidates: int = 1
    ) -> None:
        self.name = name
        self._engine = engine
        self._options = options
        self._candidates = candidates

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request."""
        options = self._options or request.options
        return self._engine.fill(msgspec.structs.replace(request, options=options, candidates=self._candidates))


def available_engines(model: Loaded, options: DecodeOptions | None = None) -> dict[str, Callable[[], Filler]]:
    """How to build every engine; each has caches of its own, and the weights are shared.

    Only a model whose base is adapted has that to compare with.
    """
    engines: dict[str, Callable[[], Filler]] = {
        "lacuna": lambda: EngineFiller(Engine(model), options=options),
        "lacuna-unconstrained": lambda: EngineFiller(
            Engine(model), name="lacuna-unconstrained", options=DecodeOptions(syntax=False)
        ),
        "lacuna-candidates": lambda: EngineFiller(
            Engine(model), name="lacuna-candidates", options=options, candidates=CANDIDATES
        ),
    }
    if not isinstance(model, LoadedModel):
        return engines
    base, dtype = model.base, model.cache_dtype

    def left_to_right(name: str, layout: Layout) -> Filler:
        return LeftToRight(name, BaseStream(base, dtype=dtype), model.tokenizer, layout)

    return engines | {
        "base-both-sides": lambda: left_to_right("base-both-sides", after_as_comment),
        "base-left": lambda: left_to_right("base-left", before_only),
    }
