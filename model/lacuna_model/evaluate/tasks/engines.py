"""The engines that an evaluation compares, by name: ours, and llama.cpp with the same weights."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

import msgspec

from lacuna_model.backends import readers
from lacuna_model.backends.readers import Loaded
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult
from lacuna_model.engine import Engine
from lacuna_model.evaluate.tasks import llama
from lacuna_model.evaluate.tasks.llama_filler import LlamaFiller
from lacuna_model.evaluate.tasks.runner import Filler
from lacuna_model.hub import models

# How many candidates the editor asks for on request, and so the engine that shows what they bring.
CANDIDATES = 3


class Variant(NamedTuple):
    """A way to ask our engine: ``options`` instead of those of the requests, and how many candidates."""

    options: DecodeOptions | None = None
    candidates: int = 1


OURS: Mapping[str, Variant] = {
    "lacuna": Variant(),
    "lacuna-unconstrained": Variant(DecodeOptions(syntax=False)),
    "lacuna-candidates": Variant(candidates=CANDIDATES),
}
# What the number of steps does to the fills of an open checkpoint: from one slot a step to everything in one pass.
STEPS: Mapping[str, Variant] = {
    "lacuna: one slot a step": Variant(DecodeOptions(schedule="single")),
    "lacuna: 1 nat": Variant(DecodeOptions(entropy_bound=1.0)),
    "lacuna: 3 nats": Variant(DecodeOptions(entropy_bound=3.0)),
    "lacuna: one pass": Variant(DecodeOptions(steps=1)),
}


class EngineFiller:
    """Our engine under evaluation: the likeliest of ``candidates``; ``options`` stand in for those of every request.

    No deadline holds, whoever asks for one: how busy the machine is must not change what is counted.
    """

    def __init__(
        self, engine: Engine, *, name: str = "lacuna", options: DecodeOptions | None = None, candidates: int = 1
    ) -> None:
        self.name = name
        self._engine = engine
        self._options = options
        self._candidates = candidates

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request."""
        options = msgspec.structs.replace(self._options or request.options, deadline_ms=0)
        return self._engine.fill(msgspec.structs.replace(request, options=options, candidates=self._candidates))


def available_engines(model: Loaded) -> dict[str, Callable[[], Filler]]:
    """How to build ours of a loaded model; each has caches of its own, and the weights are shared."""

    def build(name: str, variant: Variant) -> Filler:
        return EngineFiller(Engine(model), name=name, options=variant.options, candidates=variant.candidates)

    return {name: partial(build, name, variant) for name, variant in {**OURS, **STEPS}.items()}


def compared_engines(model: str) -> dict[str, Callable[[], Filler]]:
    """How to build every engine: ours and llama.cpp, of ``model`` and of the small one.

    Weights are loaded with the first engine that reads them. An open checkpoint can spend its steps in several ways;
    llama.cpp cannot read it.
    """
    load = cache(readers.load)

    def ours(name: str) -> Filler:
        return available_engines(load(model))[name]()

    is_checkpoint = models.folder(model) is not None
    engines: dict[str, Callable[[], Filler]] = {
        name: partial(ours, name) for name in (*OURS, *(STEPS if is_checkpoint else ()))
    }
    engines["lacuna-small"] = lambda: EngineFiller(Engine(load(models.SMALL_MODEL)), name="lacuna-small")
    if not is_checkpoint:
        engines["llama.cpp"] = partial(LlamaFiller.load, "llama.cpp", model)
    engines["llama.cpp-small"] = partial(LlamaFiller.load, "llama.cpp-small", models.SMALL_MODEL)
    return engines


def compared_by_default(model: str) -> list[str]:
    """What is compared where nobody says: ours with llama.cpp, where that is installed and reads the model."""
    return ["lacuna", "llama.cpp"] if llama.installed() and models.folder(model) is None else ["lacuna"]
