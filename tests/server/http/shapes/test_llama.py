import msgspec

from lacuna_model.core.params import FillStats, InfillResult
from lacuna_server.http.shapes.answer import Answer
from lacuna_server.http.shapes.llama import Completion, Infill, LlamaExchange

ANSWER = Answer(("one", "two"), "length", FillStats(tokens=4, context_tokens=20, cached_tokens=15, ms=50, encode_ms=10))


def reply(**fields: object) -> object:
    body = msgspec.convert({"input_prefix": "a", "input_suffix": "b", **fields}, Infill)
    return msgspec.to_builtins(LlamaExchange.infill(body, "model").reply(ANSWER))


def test_the_path_of_a_response_field_is_its_key_in_the_answer() -> None:
    found = reply(response_fields=["content", "timings/predicted_n", "timings", "no/such", "content/deeper"])
    assert set(found) == {"content", "timings/predicted_n", "timings"}
    assert found["timings/predicted_n"] == found["timings"]["predicted_n"] == 4
    assert reply(response_fields=[]) == reply()


def test_a_stream_has_all_answers() -> None:
    body = msgspec.convert({"prompt": "a", "n_cmpl": 2, "stream": True}, Completion)
    chunks = list(LlamaExchange.completion(body, "model").last(ANSWER))
    told = [(chunk.index, chunk.content, chunk.stop) for chunk in chunks]
    assert told == [(0, "one", False), (0, "", True), (1, "two", False), (1, "", True)]


def test_the_answer_tells_the_stop_string_that_it_ends_before() -> None:
    body = msgspec.convert({"prompt": "a", "stop": [";", "b"]}, Completion)
    asked = LlamaExchange.completion(body, "model")
    whole = msgspec.to_builtins(asked.reply(Answer.of(asked.question, InfillResult("ok", ("1; b",), FillStats()))))
    assert (whole["content"], whole["stop_type"], whole["stopping_word"]) == ("1", "word", ";")
