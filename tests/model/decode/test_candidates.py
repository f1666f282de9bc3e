import time
from collections.abc import Sequence
from typing import Any

import pytest
from tests.model import tiny
from tests.model.scripted import Scripted

from lacuna_model.core.constraint import Constraint
from lacuna_model.core.context import Gap, finished, heal
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MAX_CANDIDATES, DecodeOptions, FillGaps, InfillRequest, InfillResult, Region
from lacuna_model.decode import candidates as module
from lacuna_model.decode.candidates import FORK_SECONDS, Attempt, Begins, Candidates, forks
from lacuna_model.decode.fill import Fill, FillStatus
from lacuna_model.decode.gate import Judgement
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.tokenizer import Tokenizer

END = 2


def filled(gap: int, *tokens: int, rivals: dict[int, tuple[float, int]]) -> Fill:
    return Fill(Gap(gap), 8, tokens=list(tokens), rivals=rivals, status=FillStatus.ENDED_BY_MODEL)


def test_forks_begin_where_the_first_fill_was_least_certain() -> None:
    first = filled(0, 10, 11, 12, rivals={0: (3.0, 20), 2: (0.2, 22), 3: (0.9, 23), 4: (0.1, 24)})
    second = filled(1, 30, 31, rivals={1: (0.5, 41)})
    assert forks([first, second], 3, 1.0, END) == [
        [[10, 11, 22], [30, 31, END]],
        [[10, 11, 12, END], [30, 41]],
        [[10, 11, 12, 23], [30, 31, END]],
    ]
    assert len(forks([first, second], 2, 1.0, END)) == 2
    assert len(forks([first, second], 9, 9.0, END)) == 4


def ask(engine: Engine, candidates: int = 1) -> InfillResult:
    at = tiny.CODE.index("    ") + 1
    asked = InfillRequest(
        tiny.CODE,
        (Region(at, at, max_tokens=6, min_tokens=4),),
        FillGaps(candidates),
        options=DecodeOptions(syntax=False, prior=False),
    )
    return engine.fill(asked)


def test_several_candidates_differ_and_the_first_is_the_fill_that_is_found_alone(model: LoadedFim) -> None:
    alone, several = ask(Engine(model)), ask(Engine(model), 4)
    fills = (several.fills, *several.alternatives)
    assert fills[0] == alone.fills
    assert 2 <= len(set(fills)) == len(fills) <= 4


def test_a_fork_with_fewer_unknown_names_comes_before_the_first_fill(tokenizer: Tokenizer) -> None:
    def attempt(begins: Sequence[Begins]) -> Attempt:
        fills = [Fill(Gap(0), 8, candidate=candidate, begin=begin) for candidate, (begin,) in enumerate(begins)]
        texts = [tokenizer.decode(begin) or "ab" for (begin,) in begins]
        return Attempt(Scripted(tokenizer, *texts), fills, [Constraint(tokenizer) for _ in begins])

    def found(unknown: dict[int, int]) -> list[tuple[str, ...]]:
        """The fills where the nth that is judged has so many unknown names."""
        seen: list[str] = []

        def judge(delivered: str, fill: Fill) -> Judgement:
            if delivered and delivered not in seen:
                seen.append(delivered)
            return Judgement((1.0,), unknown=unknown.get(seen.index(delivered), 0) if delivered else 0)

        candidates = Candidates(attempt, 1, tokenizer, 3, judge)
        finished(candidates.denoise(None))
        return candidates.found

    first, second, third = found({})
    assert found({0: 1}) == [second, third, first]
    assert found({0: 2, 1: 2, 2: 1}) == [third, first, second]


def test_a_token_that_is_ruled_out_begins_no_fork(model: LoadedFim, monkeypatch: pytest.MonkeyPatch) -> None:
    begins: list[Any] = []

    def seen(*args: Any) -> list[Any]:
        begins.extend(forks(*args))
        return begins

    monkeypatch.setattr(module, "forks", seen)
    text = "x = 1\nif not"
    _, prefix = heal(text, model.tokenizer)
    assert len(model.prefixes.starting_with(prefix)) == 1  # every other token is ruled out
    region, options = Region(len(text), len(text), max_tokens=3, min_tokens=2), DecodeOptions(syntax=False)
    Engine(model).fill(InfillRequest(text, (region,), task=FillGaps(MAX_CANDIDATES), options=options))
    assert begins
    assert all(model.tokenizer.token_bytes(begin[0]).startswith(prefix) for (begin,) in begins)


@pytest.mark.parametrize("limit", [None, 1000.0])
def test_forks_take_so_many_seconds_at_most_where_there_is_a_time_limit(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, limit: float | None
) -> None:
    """A fork that has ended by then is kept."""
    clock, attempts = [0.0], list[Attempt]()

    def attempt(begins: Sequence[Begins]) -> Attempt:
        texts = ["ab", "abcd" * 20][: len(begins)] if attempts else ["abcd"]
        fills = [Fill(Gap(0), 99, candidate=candidate, begin=begin) for candidate, (begin,) in enumerate(begins)]
        pairs = zip(begins, texts, strict=True)
        scripted = Scripted(tokenizer, *[tokenizer.decode(begin) + text for (begin,), text in pairs])
        scripted.on_pass = lambda _: clock.__setitem__(0, clock[0] + FORK_SECONDS / 4)
        attempts.append(Attempt(scripted, fills, [Constraint(tokenizer) for _ in begins]))
        return attempts[-1]

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    found = Candidates(attempt, 1, tokenizer, 3, lambda delivered, fill: Judgement((1.0,)))
    loop = found.denoise(limit)
    assert finished(loop).outcome == "ok"
    assert (attempts[1].reader.passes == 4) == (limit is not None)
    assert len(found.found) == (3 if limit is None else 2)


@pytest.mark.parametrize("count", [0, -1, MAX_CANDIDATES + 1])
def test_an_impossible_number_of_candidates_is_refused(model: LoadedFim, count: int) -> None:
    with pytest.raises(RequestError, match="candidates"):
        ask(Engine(model), count)
