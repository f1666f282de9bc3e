"""Fills with real weights: the model of the training run's pack, whole again, in an engine on the GPU.

    python -m tests.gpu.real --pieces FOLDER --aside FILE        here: writes what the pack does not have
    cp FILE PLACE/aside                                          there, beside the pieces (:mod:`.pieces`)
    python -m tests.gpu.first --only real                        there

The pack has the weights as the model drafts with them (all layers in 4 bit), and the embeddings of 65,536 tokens.
Tokens without one have zeros there; problems that have such a token are left out.
"""

import argparse
import dataclasses
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import msgspec
import torch
from msgspec.structs import replace
from tests.benchmarks.tasks.dataset import Problem, load_problems, several, spread
from tests.gpu import pieces, pretended
from tests.gpu.harness import Place, Report
from tests.gpu.packed import Pack, from_bytes
from tests.model.fim import tiny_fim

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, Region
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import FREQUENT_TOKENS, LoadedFim
from lacuna_model.loading import rows_file
from lacuna_model.network.assembly import build_transformer
from lacuna_model.tokenizer import Tokenizer, Vocabulary
from training.base import dense

MODEL = "qwen2.5-coder-0.5b"
PROBLEMS, PAIRS = 40, 20
BATCHES = (1, 8)
# The kinds of ways.
FREE, CONSTRAINED, TWO_GAPS, EIGHT_BIT = "free", "constrained", "two gaps", "keys in 8 bit"
# What may draft, by what is reported of it.
DRAFTS = {"no drafts": DecodeOptions(prior=False, drafter=False), "drafts": DecodeOptions()}


class Aside(msgspec.Struct):
    """What a pack lacks: the model's vocabulary, and the token [n] that each number of the pack stands for.

    ``pairs`` are requests with two gaps.
    """

    vocabulary: Vocabulary
    tokens: list[int]
    problems: list[Problem]
    pairs: list[InfillRequest]


@dataclass(frozen=True, slots=True)
class Way:
    """How requests are filled, ``batch`` at the same time; the fills of all ways of one ``kind`` are to be the same."""

    kind: str
    drafts: str
    batch: int
    requests: Sequence[InfillRequest]
    model: LoadedFim

    @property
    def name(self) -> str:
        """What it is called in the report."""
        return f"{self.kind}, batch {self.batch}, {self.drafts}"


@dataclass(frozen=True, slots=True)
class Fill:
    """A fill, and the milliseconds that its request has waited for it."""

    result: InfillResult
    ms: float


def real(place: Place, report: Report) -> None:
    """Fill the problems with and without the constraint and drafts, alone and eight at the same time.

    Then two gaps, and with keys and values in 8 bit. Expected: 200 s, of which joining the pieces and building the
    model take 30.
    """
    there = pieces.PLACE / "aside"
    if not place.pretend and not there.is_file():
        report.add("left out", f"there is no {there}")
        return
    if place.pretend:
        pack, aside = pretended.pack(), _pretended()
    else:
        pack, aside = from_bytes(pieces.joined(pieces.PLACE)), read(there)
    model = loaded(pack, aside, place.device, torch.bfloat16)
    del pack
    report.add("problems", len(aside.problems))
    report.add("masks", model.transformer.masks is not None, "True")
    first: dict[str, list[str]] = {}
    for way in ways(model, aside, short=place.pretend):
        fill(way.model, way.requests, way.batch)  # graphs are recorded, and costs learnt
        began = perf_counter()
        found = fill(way.model, way.requests, way.batch)
        seconds = perf_counter() - began
        report.add(way.name, figures(found, seconds))
        fills = ["".join(one.result.fills) for one in found]
        report.add(f"{way.name}: fills that differ", differing(fills, first.setdefault(way.kind, fills)), "0")
    if CONSTRAINED in first:
        report.add("fills that differ by keys in 8 bit", differing(first[EIGHT_BIT], first[CONSTRAINED]))


def ways(model: LoadedFim, aside: Aside, *, short: bool) -> Iterator[Way]:
    """The ways in the order of their worth; ``short``: one, of two gaps of one token."""
    ones = [one.request for one in aside.problems]
    eight_bit = dataclasses.replace(model, cache_dtype=torch.int8)
    every = [
        *product((FREE, CONSTRAINED), BATCHES, [ones], [model]),
        (TWO_GAPS, 1, aside.pairs, model),
        (EIGHT_BIT, 1, ones, eight_bit),
    ]
    kinds = [(EIGHT_BIT, 1, aside.pairs, eight_bit)] if short else [one for one in every if one[2]]
    for kind, batch, requests, by in kinds:
        for drafts in list(DRAFTS)[-1:] if short else DRAFTS:
            options = replace(DRAFTS[drafts], syntax=kind != FREE)
            asked = [replace(one, options=options) for one in requests]
            if short:
                asked = [replace(one, regions=tuple(replace(at, max_tokens=1) for at in one.regions)) for one in asked]
            yield Way(kind, drafts, batch, asked, by)


def figures(found: Sequence[Fill], seconds: float) -> dict[str, float]:
    """Tokens a second in all and of a fill after its context is read, tokens a pass, and how long requests wait."""
    stats = [one.result.stats for one in found]
    tokens, waits = sum(one.tokens for one in stats), [one.ms for one in found]
    passes, context = sum(one.nfe for one in stats), sum(one.encode_ms for one in stats)
    return {
        "tokens_s": round(tokens / seconds, 1),
        "tokens_s of one after its context": round(tokens * 1e3 / max(sum(waits) - context, 1e-6), 1),
        "tokens_a_pass": round(tokens / max(passes, 1), 3),
        "ms_a_pass": round((sum(waits) - context) / max(passes, 1), 3),
        "wait_ms median": round(median(waits), 1),
        "wait_ms p95": round(quantiles(waits, n=20)[-1] if len(waits) > 1 else waits[0], 1),
        "context_ms": round(context / len(found), 1),
        "constraint_ms": round(sum(one.constraint_ms for one in stats) / len(found), 1),
        "tokens": tokens,
        "not ok": sum(one.result.status != "ok" for one in found),
    }


def differing(fills: Sequence[str], others: Sequence[str]) -> int:
    """How many of the fills are not as the others."""
    return sum(one != other for one, other in zip(fills, others, strict=True))


def fill(model: LoadedFim, requests: Sequence[InfillRequest], batch: int) -> list[Fill]:
    """Fill all requests, ``batch`` at the same time, one step of each in turn; no context was read before."""
    engine, found = Engine(model), dict[int, Fill]()
    waiting = deque(enumerate(requests))
    active: deque[tuple[int, float, Iterator[object]]] = deque()
    while waiting or active:
        while waiting and len(active) < batch:
            number, request = waiting.popleft()
            active.append((number, perf_counter(), engine.stream(request, document=str(number))))
        number, began, stream = active.popleft()
        try:
            next(stream)
        except StopIteration as end:
            found[number] = Fill(end.value, (perf_counter() - began) * 1e3)
        else:
            active.append((number, began, stream))
    return [found[number] for number in range(len(requests))]


def loaded(pack: Pack, aside: Aside, device: torch.device, dtype: torch.dtype) -> LoadedFim:
    """The model of a pack with all tokens, and what ships to draft for it."""
    tensors = dense(pack.weights, pack.about.config, device, dtype)
    tokenizer = Tokenizer(aside.vocabulary)
    config = replace(pack.about.config, vocab_size=len(aside.vocabulary.tokens), tie_embeddings=True)
    table = torch.zeros((config.vocab_size, config.hidden_size), device=device, dtype=dtype)
    table[torch.tensor(aside.tokens, device=device)] = tensors["embedding"]
    transformer = build_transformer(config, tensors | {"embedding": table, "head": table})
    masks = rows_file.shipped(MODEL) if config.hidden_size == 896 else None
    return LoadedFim(
        MODEL,
        config,
        tokenizer,
        transformer if masks is None else rows_file.read(masks, transformer),
        PrefixTable(tokenizer, device),
        dtype,
    )


def aside(pack: Pack, vocabulary: Vocabulary, weights: dict[str, torch.Tensor], problems: Sequence[Problem]) -> Aside:
    """What a pack lacks of the model that it was made of, whose ``weights`` are as it drafts; and problems for it.

    A number of the pack stands for the token that has its embedding.
    """
    first: dict[bytes, int] = {}
    for token, row in enumerate(_rows(weights)):
        first.setdefault(row, token)
    frequent = range(min(FREQUENT_TOKENS, len(pack.weights["embedding"])))
    tokens = [*frequent, *(first[row] for row in _rows(pack.weights)[len(frequent) :])]
    tokenizer, known = Tokenizer(vocabulary), set(tokens)
    fitting = [one for one in problems if known.issuperset(tokenizer.encode(one.document(one.canonical_solution)))]
    return Aside(vocabulary, tokens, spread(fitting, PROBLEMS), pairs_of(fitting)[:PAIRS])


def pairs_of(problems: Sequence[Problem]) -> list[InfillRequest]:
    """A request with two gaps for every solution of which two single lines are problems."""
    try:
        return [one.request for one in several(problems, 2)]
    except RequestError:
        return []


def _rows(weights: dict[str, torch.Tensor]) -> list[bytes]:
    """The rows of the embedding, as they are stored."""
    names = [name for name in ("embedding", "embedding.blocks", "embedding.scale") if name in weights]
    parts = [weights[name] for name in names if len(weights[name])]
    tables = [(part.half() if part.dtype is torch.float32 else part).contiguous().view(len(part), -1) for part in parts]
    return [row.tobytes() for row in torch.cat([table.view(torch.uint8) for table in tables], dim=1).numpy()]


def write(path: Path, one: Aside) -> None:
    """Write it compressed."""
    path.write_bytes(zlib.compress(msgspec.msgpack.encode(one), 9))


def read(path: Path) -> Aside:
    """Read what :func:`write` wrote."""
    return msgspec.msgpack.decode(zlib.decompress(path.read_bytes()), type=Aside)


def _pretended() -> Aside:
    problem = Problem("SingleLineInfilling/0", "f", "x = ", "\n", "1", "")
    vocabulary = replace(tiny_fim.VOCABULARY, fim=tiny_fim.FIM)
    pair = InfillRequest("x = \ny = \n", (Region(4, 4), Region(9, 9)), path="solution.py", language="python")
    return Aside(vocabulary, list(range(len(vocabulary.tokens))), [problem], [pair])


def main() -> None:
    """Write the file beside the pieces."""
    from lacuna_model.hub import models
    from training.masks import plain_form

    parser = argparse.ArgumentParser(description="What the pack of the training run lacks of its model.")
    parser.add_argument("--pieces", type=Path, required=True)
    parser.add_argument("--problems", type=Path, required=True, help="HumanEval-Infilling, .jsonl.gz")
    parser.add_argument("--aside", type=Path, required=True)
    chosen = parser.parse_args()
    about, weights = plain_form(models.weights(MODEL), drafts=True)
    pack = from_bytes(pieces.joined(chosen.pieces))
    made = aside(pack, about.vocabulary, weights, load_problems(chosen.problems))
    write(chosen.aside, made)
    print(f"{len(made.tokens):,} tokens, {len(made.problems)} problems, {chosen.aside.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
