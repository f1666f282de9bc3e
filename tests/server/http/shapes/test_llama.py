import msgspec
import pytest

from lacuna_model.core.params import FillStats
from lacuna_server.http.shapes.answer import Answer
from lacuna_server.http.shapes.llama import Completion, Infill, LlamaExchange, Timings, select

ANSWER = Answer(("one", "two"), "length", FillStats(tokens=4, context_tokens=20, cached_tokens=15, ms=50, encode_ms=10))


def reply(**fields: object) -> object:
    body = msgspec.convert({"input_prefix": "a", "input_suffix": "b", **fields}, Infill)
    return msgspec.to_builtins(LlamaExchange.infill(body, "model").reply(ANSWER))


def test_the_path_of_a_response_field_is_its_key_in_the_answer() -> None:
    found = reply(response_fields=["content", "timings/predicted_n", "timings", "no/such", "content/deeper"])
    assert set(found) == {"content", "timings/predicted_n", "timings"}
    assert found["timings/predicted_n"] == found["timings"]["predicted_n"] == 4


def test_several_answers_are_a_list_with_the_same_fields() -> None:
    assert [one["content"] for one in reply(n_cmpl=2)] == ["one", "two"]
    assert reply(n_cmpl=2, response_fields=["index"]) == [{"index": 0}, {"index": 1}]
    assert reply(response_fields=[]) == {}


def test_the_full_answer_tells_why_the_fill_ended() -> None:
    assert reply()["stop_type"] == "limit"
    assert (reply()["tokens_predicted"], reply()["tokens_evaluated"], reply()["tokens_cached"]) == (4, 20, 15)


@pytest.mark.parametrize(("n_predict", "limit"), [(-1, 96), (None, 96), (-2, 96), (7, 7)])
def test_a_negative_length_means_the_default_limit(n_predict: int | None, limit: int) -> None:
    body = Completion(prompt="x", n_predict=n_predict)
    assert LlamaExchange.completion(body, "model").question.limit == limit


def test_rates_of_an_empty_fill_are_zero() -> None:
    timings = Timings.of(FillStats())
    assert (timings.prompt_per_token_ms, timings.predicted_per_second) == (0.0, 0.0)


def test_only_the_requested_fields_are_selected() -> None:
    whole = LlamaExchange.completion(Completion(prompt="x"), "model").reply(ANSWER)
    assert select(whole, [""]) == {}
