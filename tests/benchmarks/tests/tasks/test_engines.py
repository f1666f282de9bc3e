import sys
from pathlib import Path
from typing import cast

import pytest
from tests.benchmarks.tasks.engines import CUT, OURS, STEPS, EngineFiller, compared_by_default, compared_engines
from tests.benchmarks.tests.fakes import Canned, write_llama_cpp
from tests.model.fim import tiny_fim

from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, Region
from lacuna_model.engine import Engine
from lacuna_model.hub.models import SMALL_MODEL


def test_given_options_replace_those_of_the_request() -> None:
    request = InfillRequest(text="", regions=(Region(0, 0),), options=DecodeOptions(seed=7))
    seen = Canned("engine", lambda *_: "x")
    for options, seed in ((None, 7), (DecodeOptions(seed=9), 9)):
        result: InfillResult = EngineFiller(cast(Engine, seen), options=options).fill(request)
        assert result.fills == ("x",)
        assert seen.requests[-1].options.seed == seed


def test_the_number_of_candidates_is_passed_to_the_engine() -> None:
    seen = Canned("engine", lambda *_: "x")
    EngineFiller(cast(Engine, seen), candidates=3).fill(InfillRequest(text="", regions=(Region(0, 0),)))
    assert seen.requests[-1].candidates == 3


@pytest.mark.parametrize("options", [None, DecodeOptions(deadline_ms=7)])
def test_an_evaluation_has_no_deadline(options: DecodeOptions | None) -> None:
    seen = Canned("engine", lambda *_: "x")
    request = InfillRequest(text="", regions=(Region(0, 0),), options=DecodeOptions(deadline_ms=5))
    EngineFiller(cast(Engine, seen), options=options).fill(request)
    assert seen.requests[-1].options.deadline_ms == 0


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that are loaded. The tiny model is loaded in place of each."""
    names: list[str] = []

    def load(name: str) -> Engine:
        names.append(name)
        return Engine(tiny_fim.loaded())

    monkeypatch.setattr(Engine, "load", load)
    return names


def test_our_engines_of_one_model_share_its_weights(loads: list[str]) -> None:
    engines = compared_engines("large")
    assert list(engines) == [*OURS, CUT, "lacuna-small", "llama.cpp", "llama.cpp-small"]
    assert loads == []
    fillers = [engines[name]() for name in (*OURS, CUT, "lacuna-small")]
    assert [filler.name for filler in fillers] == [*OURS, CUT, "lacuna-small"]
    assert loads == ["large", SMALL_MODEL]


def test_a_diffusion_checkpoint_is_compared_by_steps_and_not_with_llama_cpp(tmp_path: Path, loads: list[str]) -> None:
    (tmp_path / "config.json").write_text("{}")
    engines = compared_engines(str(tmp_path))
    assert list(engines) == [*OURS, CUT, *STEPS, "lacuna-small", "llama.cpp-small"]
    filler = engines["lacuna: one pass"]()
    assert filler.name == "lacuna: one pass"


def test_llama_cpp_is_compared_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    assert compared_by_default(SMALL_MODEL) == ["lacuna"]
    monkeypatch.delitem(sys.modules, "llama_cpp")
    monkeypatch.syspath_prepend(write_llama_cpp(tmp_path))
    assert compared_by_default(SMALL_MODEL) == ["lacuna", "llama.cpp"]
    (tmp_path / "config.json").write_text("{}")
    assert compared_by_default(str(tmp_path)) == ["lacuna"]
