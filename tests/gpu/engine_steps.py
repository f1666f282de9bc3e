"""Steps that concern whole requests: an engine's rounds with scripted drafts."""

import cProfile
import dataclasses
import pstats
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
import torch
from msgspec.structs import replace
from tests.gpu.harness import Place, Report
from tests.gpu.model_steps import fast
from tests.gpu.shapes import CONTEXT, SHAPES, TINY, num_bytes, tensors
from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.engine import Engine
from lacuna_model.fim.costs import DraftedToken, PassCosts
from lacuna_model.fim.drafts import Drafts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.network.config import ModelConfig
from lacuna_model.tokenizer import Tokenizer

# Tokens a second of the 1.5B at batch 1, expected on an H100, for 0, 2 and 4 accepted tokens a pass.
PREDICTED = {("0.5B", 0): "500", ("1.5B", 0): "400", ("1.5B", 2): "1100", ("1.5B", 4): "1700", ("7B", 2): "400"}
CACHE_BYTES = 8 << 30


class Script:
    """Drafts that hold for a given number of tokens: what an earlier fill of the same document wrote, then another one.

    It replaces :meth:`Drafts.draft`, and takes down what each document's fill writes.
    """

    def __init__(self) -> None:
        self.accepted = 0
        self._written: dict[object, list[int]] = {}

    def draft(
        self, drafts: Drafts, key: tuple[int, int], written: Sequence[int], most: int, *rest: object
    ) -> list[DraftedToken]:
        document = tuple(map(tuple, drafts._layout.segments))
        if not self.accepted:
            self._written[document] = list(written)
            return []
        known = self._written.get(document, [])
        if known[: len(written)] != list(written):
            return []
        right = known[len(written) : len(written) + self.accepted]
        wrong = [(right[-1] + 1) % 200 + 5] if right else []
        return [DraftedToken(token, 0.5, "project") for token in [*right, *wrong][:most]]


def loaded(place: Place, config: ModelConfig, *, eight_bit: bool = False, like: LoadedFim | None = None) -> LoadedFim:
    """A model with random weights, whose vocabulary is filled up to its size; ``like`` has the same tokens."""
    if like is not None:
        transformer = fast(place, config, tensors(config, place.device, eight_bit=eight_bit))
        return dataclasses.replace(like, name="random like", config=config, transformer=transformer, costs=PassCosts())
    fillers = tuple(f"zq{number:x}" for number in range(config.vocab_size - len(tiny_fim.VOCABULARY.tokens)))
    vocabulary = replace(tiny_fim.VOCABULARY, tokens=(*tiny_fim.VOCABULARY.tokens, *fillers))
    tokenizer = Tokenizer(vocabulary)
    transformer = fast(place, config, tensors(config, place.device, eight_bit=eight_bit))
    prefixes = PrefixTable(tokenizer, place.device)
    return LoadedFim("random", config, tokenizer, transformer, prefixes, tiny_fim.FIM, torch.bfloat16)


def requests(model: LoadedFim, count: int, context: int, most: int) -> list[InfillRequest]:
    """``count`` documents of some ``context`` tokens, each with a gap of ``most`` tokens in its middle."""
    size = len(model.tokenizer.encode(tiny.CODE))
    repeats = max(context // (2 * size), 1)
    found = []
    for number in range(count):
        before = f"# file {number}\n" + tiny.CODE * repeats
        after = "\n" + tiny.CODE * repeats if context > size else "\nx"
        at = len(before)
        options = DecodeOptions(syntax=False)
        region = Region(at, at, max_tokens=most, min_tokens=most)
        found.append(InfillRequest(before + after, (region,), path=f"{number}.txt", options=options))
    return found


def run(engine: Engine, wanted: Sequence[InfillRequest]) -> tuple[int, int, float]:
    """Fill all requests at the same time, one step of each in turn: tokens, passes of each summed, seconds."""
    began = time.perf_counter()
    streams: deque[Iterator[object]] = deque(engine.stream(request) for request in wanted)
    tokens = passes = 0
    while streams:
        stream = streams.popleft()
        try:
            next(stream)
        except StopIteration as end:
            tokens += wanted[0].regions[0].max_tokens
            passes += end.value.stats.nfe
        else:
            streams.append(stream)
    return tokens, passes, time.perf_counter() - began


def rounds(name: str, *, eight_bit: bool = False) -> Callable[[Place, Report], None]:
    """The step that fills gaps with an engine of one shape."""
    return partial(_rounds, name, eight_bit)


def _rounds(name: str, eight_bit: bool, place: Place, report: Report) -> None:
    config = replace(TINY, vocab_size=len(tiny_fim.VOCABULARY.tokens)) if place.pretend else SHAPES[name]
    context, most = (20, 4) if place.pretend else (CONTEXT, 128)
    report.add("floor_tokens_s", 3.0e12 / num_bytes(config, eight_bit=eight_bit))
    model = loaded(place, config, eight_bit=eight_bit)
    engine, script = Engine(model, cache_bytes=CACHE_BYTES), Script()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Drafts, "draft", lambda self, *arguments: script.draft(self, *arguments))
        for batch in (1,) if place.pretend else (1, 8, 32):
            # The host's time, which many requests show, does not depend on the model.
            short = name == "7B" and batch > 8
            wanted = requests(model, batch, context, most // 2 if short else most)
            script.accepted = 0
            run(engine, wanted)
            fills = [engine.fill(request).fills for request in wanted[:1]]
            for accepted in (0, 2) if place.pretend else (0, 4) if short else (0, 2, 4):
                script.accepted = accepted
                run(engine, wanted)  # graphs are recorded
                tokens, passes, seconds = run(engine, wanted)
                about = {
                    "tokens_s": round(tokens / seconds, 2),
                    "tokens_a_pass": round(tokens / passes, 2),
                    "ms_a_pass": round(seconds * 1e3 / passes * batch, 3),
                }
                report.add(
                    f"batch {batch}, {accepted} accepted",
                    about,
                    PREDICTED.get((name, accepted), "") if batch == 1 else "",
                )
                same = [engine.fill(request).fills for request in wanted[:1]] == fills
                report.add(f"batch {batch}, {accepted} accepted: the fill is the same", same, "True")
        script.accepted = 2
        _profile(report, partial(run, engine, requests(model, 1, context, most)))


def _profile(report: Report, work: Callable[[], object]) -> None:
    """The functions that take the most of the host's time."""
    profile = cProfile.Profile()
    profile.runcall(work)
    stats = pstats.Stats(profile)
    rows = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:25]  # type: ignore[attr-defined]
    total = stats.total_tt  # type: ignore[attr-defined]
    own = [
        f"{each[2] / total:5.1%} {each[0]:6d} x {file.rsplit('/', 1)[-1]}:{line} {function}"
        for (file, line, function), each in rows
    ]
    report.add("host", own)
