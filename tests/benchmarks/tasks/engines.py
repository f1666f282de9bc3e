"""The engines that an evaluation compares, by name: Lacuna's, and llama.cpp with the same weights."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

import msgspec
from tests.benchmarks.tasks import llama
from tests.benchmarks.tasks.cut import CutFiller
from tests.benchmarks.tasks.llama_filler import LlamaFiller
from tests.benchmarks.tasks.runner import Filler

from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, InfillResult
from lacuna_model.engine import Engine
from lacuna_model.hub import models

# The number of candidates that editors request by default, used by the engine ``lacuna-candidates``.
CANDIDATES = 3
UNCONSTRAINED, CUT = "lacuna-unconstrained", "lacuna-cut"


class Variant(NamedTuple):
    """A variant of Lacuna's engine: ``options`` replace those of the requests; ``candidates`` is their number."""

    options: DecodeOptions | None = None
    candidates: int = 1


OURS: Mapping[str, Variant] = {
    "lacuna": Variant(),
    UNCONSTRAINED: Variant(DecodeOptions(syntax=False)),
    "lacuna-candidates": Variant(candidates=CANDIDATES),
}
# Variants in the number of steps for an open checkpoint, from one slot per step to a single pass.
STEPS: Mapping[str, Variant] = {
    "lacuna: one slot a step": Variant(DecodeOptions(schedule="single")),
    "lacuna: 1 nat": Variant(DecodeOptions(entropy_bound=1.0)),
    "lacuna: 3 nats": Variant(DecodeOptions(entropy_bound=3.0)),
    "lacuna: one pass": Variant(DecodeOptions(steps=1)),
}


class EngineFiller:
    """Lacuna's engine under evaluation: delivers the likeliest of ``candidates``; ``options`` replace the requests'.

    Deadlines are ignored, so that results do not depend on the load of the machine.
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
        task = request.task
        if isinstance(task, FillGaps):
            task = msgspec.structs.replace(task, candidates=self._candidates)
        return self._engine.fill(msgspec.structs.replace(request, options=options, task=task))


def available_engines(loaded: Engine) -> dict[str, Callable[[], Filler]]:
    """Returns builders for the variants of a loaded engine; each has its own caches, all share the weights.

    ``CUT`` checks the fills without a constraint once, and cuts them to their valid lines.
    """

    def build(name: str, variant: Variant) -> Filler:
        return EngineFiller(Engine(loaded.model), name=name, options=variant.options, candidates=variant.candidates)

    found = {name: partial(build, name, variant) for name, variant in {**OURS, **STEPS}.items()}
    return {**found, CUT: lambda: CutFiller(CUT, found[UNCONSTRAINED]())}


def compared_engines(model: str) -> dict[str, Callable[[], Filler]]:
    """Returns builders for every engine: Lacuna's and llama.cpp, for ``model`` and for the small model.

    The first engine that uses weights loads them. Only an open checkpoint has variants by steps; llama.cpp cannot read
    it.
    """
    load = cache(Engine.load)  # as a user loads it

    def ours(name: str) -> Filler:
        return available_engines(load(model))[name]()

    is_checkpoint = models.folder(model) is not None
    engines: dict[str, Callable[[], Filler]] = {
        name: partial(ours, name) for name in (*OURS, CUT, *(STEPS if is_checkpoint else ()))
    }
    engines["lacuna-small"] = lambda: EngineFiller(Engine(load(models.SMALL_MODEL).model), name="lacuna-small")
    if not is_checkpoint:
        engines["llama.cpp"] = partial(LlamaFiller.load, "llama.cpp", model)
    engines["llama.cpp-small"] = partial(LlamaFiller.load, "llama.cpp-small", models.SMALL_MODEL)
    return engines


def compared_by_default(model: str) -> list[str]:
    """Returns the default engines: Lacuna's, and llama.cpp if it is installed and can read the model."""
    return ["lacuna", "llama.cpp"] if llama.installed() and models.folder(model) is None else ["lacuna"]
