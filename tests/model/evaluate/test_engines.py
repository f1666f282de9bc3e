from typing import cast

from lacuna_model.engine import Engine
from lacuna_model.evaluate.engines import EngineFiller
from lacuna_model.params import DecodeOptions, InfillRequest, InfillResult, Region

from .fakes import Canned


def test_given_options_stand_in_for_those_of_the_request() -> None:
    request = InfillRequest(text="", regions=(Region(0, 0),), options=DecodeOptions(seed=7))
    seen = Canned("engine", lambda *_: "x")
    for options, seed in ((None, 7), (DecodeOptions(seed=9), 9)):
        result: InfillResult = EngineFiller(cast(Engine, seen), options=options).fill(request)
        assert result.fills == ("x",)
        assert seen.requests[-1].options.seed == seed


def test_the_likeliest_of_several_is_asked_for_where_that_is_compared() -> None:
    seen = Canned("engine", lambda *_: "x")
    EngineFiller(cast(Engine, seen), candidates=3).fill(InfillRequest(text="", regions=(Region(0, 0),)))
    assert seen.requests[-1].candidates == 3
