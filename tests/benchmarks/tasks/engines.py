"""The engines that an evaluation compares, by name: Lacuna's, and llama.cpp with the same weights."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from msgspec.structs import replace
from tests.benchmarks.tasks import llama
from tests.benchmarks.tasks.fills import Filler

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult
from lacuna_model.engine import Engine
from lacuna_model.hub import models

LACUNA, UNCONSTRAINED, LLAMA_CPP = "lacuna", "lacuna-unconstrained", "llama.cpp"


def of_engine(name: str, engine: Engine, is_constrained: bool = True) -> Filler:
    """Lacuna's engine. Deadlines are ignored, so that results do not depend on the load of the machine."""

    def fill(request: InfillRequest) -> InfillResult:
        syntax = is_constrained and request.options.syntax
        return engine.fill(replace(request, options=replace(request.options, deadline_ms=0, syntax=syntax)))

    return Filler(name, fill)


def chosen(model: str, names: Sequence[str]) -> list[Filler]:
    """The engines with these names; each of Lacuna's has its own caches, all share the weights.

    By default Lacuna's, and llama.cpp if it is installed and can read the model. Raises RequestError for an unknown
    name.
    """
    load = cache(Engine.load)  # as a user loads it

    def own(name: str, is_constrained: bool = True) -> Filler:
        return of_engine(name, Engine(load(model).model), is_constrained)

    available: Mapping[str, Callable[[], Filler]] = {
        LACUNA: lambda: own(LACUNA),
        UNCONSTRAINED: lambda: own(UNCONSTRAINED, False),
        LLAMA_CPP: lambda: Filler(LLAMA_CPP, llama.LlamaFiller.load(model).fill),
    }
    if unknown := [name for name in names if name not in available]:
        raise RequestError(f"no engine named {unknown[0]!r}; there are {', '.join(available)}")
    default = [LACUNA, *([LLAMA_CPP] if llama.installed() and not models.weights(model).is_dir() else [])]
    return [build() for name, build in available.items() if name in (names or default)]
