"""The HTTP handler: what clients send, invalid bodies, clients that disconnect, models that are not loaded."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator

import httpx2
import pytest

from lacuna_server.http.endpoint import EventStream
from lacuna_server.wire.protocol import ServiceError

from .scripted import Script, post, serving

ASKED = {"prompt": "x = ", "suffix": "\n"}


@pytest.mark.parametrize("silent", [True, False], ids=["before-a-step", "after-steps"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_client_that_disconnects_cancels_its_request(stream: bool, silent: bool) -> None:
    script = Script(fills=("a\nb",), hold=asyncio.Event(), silent=silent)
    async with serving(script) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.post("/v1/completions", json=ASKED | {"stream": stream}, timeout=httpx2.Timeout(5, read=0.2))
        async with asyncio.timeout(10):
            while not script.tickets[0].cancelled:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("count", [1, 2])
async def test_a_fill_is_streamed_in_pieces_only_without_alternatives(count: int) -> None:
    script = Script(fills=("a\nb\nc", "d"))
    told = (await post(script, "/v1/completions", ASKED | {"stream": True, "n": count})).text
    assert ('"text":"a\\nb\\nc"' in told) == (count == 2)
    assert ('"text":"\\nc"' in told) == (count == 1)


async def test_a_model_that_could_not_be_loaded_is_tried_again_after_a_request() -> None:
    script = Script(refuse=ServiceError("model_failed", "the weights are gone"))
    response = await post(script, "/v1/completions", ASKED)
    assert response.status_code == 503
    assert "the weights are gone" in response.json()["error"]["message"]
    assert script.retries == 1


async def test_a_stop_string_ends_the_work() -> None:
    script = Script(fills=("x = 1\n\n    y = 2\n    z = 3",), hold=asyncio.Event())
    async with serving(script) as client:
        answer = (await client.post("/v1/completions", json=ASKED | {"stop": ["\n\n"]})).json()
        streamed = (await client.post("/v1/completions", json=ASKED | {"stop": ["\n\n"], "stream": True})).text
    assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == ("x = 1", "stop")
    assert answer["usage"]["prompt_tokens"] == 20
    assert "x = 1" in streamed
    assert "y = 2" not in streamed
    assert all(ticket.cancelled for ticket in script.tickets)


async def test_an_answer_with_a_form_is_not_cut_off_when_its_time_is_over() -> None:
    asked = ASKED | {"t_max_predict_ms": 0.001, "response_format": {"type": "json_object"}}
    (choice,) = (await post(Script(fills=('{"a":\n1}',)), "/v1/completions", asked)).json()["choices"]
    assert choice["text"] == '{"a":\n1}'


async def test_a_body_that_does_not_arrive_is_refused_after_a_timeout() -> None:
    async with serving(Script(), body_timeout_s=0.2) as client:
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        writer.write(b'POST /infill HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"input_prefix":')
        try:
            async with asyncio.timeout(10):
                answer = await reader.read()  # up to the end of the connection
        finally:
            writer.close()
        assert (await client.get("/health")).status_code == 200
    head, _, body = answer.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 408 ")
    assert json.loads(body)["error"]["message"] == "the request body did not arrive within 0.2 s"


async def test_the_event_loop_runs_between_two_events_of_a_stream() -> None:
    async def events() -> AsyncGenerator[bytes]:
        for number in b"bcdefghij":
            yield bytes([number])

    turns: list[bytes] = []
    async for event in EventStream(b"a", events()).body_iterator:
        assert isinstance(event, bytes)
        assert len(turns) == event[0] - ord("a")
        asyncio.get_running_loop().call_soon(turns.append, event)
    assert len(turns) == 10


async def test_too_large_a_body_or_document_is_refused() -> None:
    async with serving(Script(), max_message_bytes=2000, max_document_bytes=1000) as client:
        body = await client.post("/infill", json={"input_prefix": "x" * 3000, "input_suffix": ""})
        document = await client.post("/infill", json={"input_prefix": "é" * 600, "input_suffix": ""})
        chunked = await client.post("/infill", content=pieces())
        openai = await client.post("/v1/completions", json={"prompt": "x" * 1500})
    assert [response.status_code for response in (body, document, chunked)] == [413, 413, 413]
    assert document.json()["error"]["code"] == chunked.json()["error"]["code"] == 413
    assert openai.json()["error"]["code"] == "too_large"
    assert {one.json()["error"]["type"] for one in (document, openai)} == {"invalid_request_error"}


async def pieces():
    for _ in range(30):
        yield b'{"x":' + b" " * 100


# Unusual fields of existing clients.
FIELDS = [
    {"prompt": ["x = "]},
    {"prompt": "x = ", "max_tokens": 4.0, "n_predict": 4.0},
    {"prompt": "x = ", "max_tokens": -1, "n_predict": -1},
    {"prompt": "x = ", "stop": None, "seed": None, "temperature": 1, "logit_bias": {}, "best_of": 1},
    {"prompt": "x = ", "stop": "\n"},
    {"prompt": "x = ", "stop": ["\n", "\r"]},
    {"prompt": "s = \ud83d", "max_tokens": 4},  # half a surrogate pair
]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/fim/completions", "/completion"])
async def test_unusual_fields_of_existing_clients_are_accepted(path: str) -> None:
    async with serving(Script()) as client:
        for fields in FIELDS:
            assert (await client.post(path, content=json.dumps(fields))).status_code == 200, fields


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b'{"prompt": 1}', r"Expected `str \| array`, got `int` - at `\$.prompt`"),
        (b'{"prompt": "x", "n": 99}', r"at `\$.n`"),
        (b'{"prompt": "x", "seed": -9223372036854775808}', r"at `\$.seed`"),
        (b'{"prompt": "\xff"}', "(?i)utf-8"),
        (b'{"unknown":' + b"[" * 100_000, "(?i)recursion"),
        (b"{}", "missing required field"),
        (b'{"prompt": ["a", "b"]}', "2 of them"),
        (b'{"prompt": []}', "0 of them"),
        (b'{"prompt": [1, 2]}', "Expected `str`, got `int`"),
        (b'{"prompt": "x", "max_tokens": 4.5}', "Expected `int"),
        (b'{"prompt": "x", "max_tokens": 1e300}', "Expected `int"),
        (b'{"prompt": "x", "max_tokens": "4"}', "Expected `int"),
        (b"[1.0]", "Expected `object`"),
    ],
)
async def test_a_meaningless_body_is_refused_in_one_line(content: bytes, why: str) -> None:
    response = await post(Script(), "/v1/completions", content=content)
    assert response.status_code == 400
    error = response.json()["error"]
    message = error["message"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] in (None, message.partition(":")[0])
    assert re.search(why, message)
    assert "\n" not in message
