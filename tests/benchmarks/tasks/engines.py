"""The engines that an evaluation compares, by name: Lacuna's, and llama.cpp with the same weights."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, product

from msgspec.structs import replace
from tests.benchmarks.tasks import llama
from tests.benchmarks.tasks.fills import Filler

from lacuna_model.core import regions as region_groups
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_model.engine import Engine
from lacuna_model.hub import models
from lacuna_model.syntax import Document, language_for

LACUNA, UNCONSTRAINED, CUT, LLAMA_CPP = "lacuna", "lacuna-unconstrained", "lacuna-cut", "llama.cpp"
MAX_CHECKED = 512  # sets of cut fills: two gaps of twenty lines


def of_engine(name: str, engine: Engine, is_constrained: bool = True) -> Filler:
    """Lacuna's engine. Deadlines are ignored, so that results do not depend on the load of the machine."""

    def fill(request: InfillRequest) -> InfillResult:
        syntax = is_constrained and request.options.syntax
        return engine.fill(replace(request, options=replace(request.options, deadline_ms=0, syntax=syntax)))

    return Filler(name, fill)


def cut(name: str, filler: Filler) -> Filler:
    """The simplest constraint: another engine's fills, cut to the most whole lines with which the file is valid.

    Where none is valid, not even an empty fill, the result is ``no_valid_fill``.
    """

    def fill(request: InfillRequest) -> InfillResult:
        result = filler.fill(request)
        language = language_for(request.path, request.language)
        if result.status != "ok" or language is None:
            return result
        text, regions = request.text.encode(), request.regions
        document = Document(text, [(region.start, region.end) for region in regions], language)
        fills = _kept(text, regions, result.fills, document)
        if fills is None:
            standing = region_groups.standing(text, regions)
            return replace(result, status="no_valid_fill", fills=standing, message="no line of the fills is valid")
        return replace(result, fills=fills)

    return Filler(name, fill)


def _kept(text: bytes, regions: Sequence[Region], fills: Sequence[str], document: Document) -> tuple[str, ...] | None:
    """Returns the fills, or what is valid of them with the fewest lines cut off; None for nothing."""
    cuts = [list(_cuts(fill, text[region.end :])) for region, fill in zip(regions, fills, strict=True)]
    ways = sorted(product(*(range(len(own)) for own in cuts)), key=sum)
    for way in islice(ways, MAX_CHECKED):
        found = tuple(own[number] for own, number in zip(cuts, way, strict=True))
        if not document.check_fresh([fill.encode() for fill in found]):
            return found
    return None


def _cuts(fill: str, after: bytes) -> Iterator[str]:
    """A fill, and the fill with ever fewer lines; the last one keeps its newline unless the suffix begins with one."""
    yield fill
    ends_line = after.startswith((b"\n", b"\r"))
    lines = fill.splitlines(keepends=True)
    for number in range(len(lines) - 1, -1, -1):
        whole = "".join(lines[:number])
        if (cut := whole.removesuffix("\n") if ends_line else whole) != fill:
            yield cut


def one_by_one(filler: Filler) -> Filler:
    """Fills the gaps of a request in order, one request each, with the later gaps still empty.

    The ``steps`` of its stats are the passes of the gap that took the most.
    """

    def fill(request: InfillRequest) -> InfillResult:
        text, fills = request.text.encode(), [""] * len(request.regions)
        stats, longest = FillStats(), 0
        for index in range(len(fills)):
            current, own = region_groups.text_for(text, request.regions, fills, range(index, index + 1))
            result = filler.fill(replace(request, text=current.decode(), regions=tuple(own)))
            stats, longest = stats + result.stats, max(longest, result.stats.nfe)
            fills[index] = result.fills[0]
            if result.status != "ok":
                break
        return replace(result, fills=tuple(fills), stats=replace(stats, steps=longest))

    return Filler(f"{filler.name}, one by one", fill)


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
        CUT: lambda: cut(CUT, own(UNCONSTRAINED, False)),
        LLAMA_CPP: lambda: Filler(LLAMA_CPP, llama.LlamaFiller.load(model).fill),
    }
    if unknown := [name for name in names if name not in available]:
        raise RequestError(f"no engine named {unknown[0]!r}; there are {', '.join(available)}")
    default = [LACUNA, *([LLAMA_CPP] if llama.installed() and models.folder(model) is None else [])]
    return [build() for name, build in available.items() if name in (names or default)]
