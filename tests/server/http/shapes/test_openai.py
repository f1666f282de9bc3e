import msgspec
from tests.server.http.scripted import snapshots

from lacuna_model.core.params import FillStats
from lacuna_server.http.shapes.answer import Answer
from lacuna_server.http.shapes.openai import TextExchange, TextRequest

ANSWER = Answer(("one\ntwo", "other"), "stop", FillStats(tokens=4, context_tokens=20))


def exchange(**fields: object) -> TextExchange:
    return TextExchange(msgspec.convert({"prompt": "x", **fields}, TextRequest), "model")


def test_a_stream_sends_the_first_fill_in_pieces_and_the_others_at_once() -> None:
    asked = exchange(n=2, stream=True)
    chunks = [chunk for snapshot in snapshots("one\ntwo") for chunk in asked.chunks(snapshot)]
    chunks += asked.last(ANSWER)
    told = [(choice.index, choice.text, choice.finish_reason) for chunk in chunks for choice in chunk.choices]
    assert told == [(0, "one", None), (0, "\ntwo", "stop"), (1, "other", "stop")]
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1


def test_the_usage_is_the_last_chunk_if_it_is_requested() -> None:
    *chunks, last = exchange(stream=True, stream_options={"include_usage": True}).last(ANSWER)
    assert all(chunk.usage is None for chunk in chunks)
    assert (last.choices, last.usage.total_tokens) == ([], 24)
