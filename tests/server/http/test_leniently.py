"""Every shape accepts what existing clients send: prompts in lists, counts as 4.0, halves of surrogate pairs."""

import json
from typing import Any

import pytest
from tests.server.http.scripted import Script, serving

TEXT_PATHS = ["/v1/completions", "/v1/fim/completions", "/completion"]


@pytest.mark.parametrize("path", TEXT_PATHS)
@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": ["x = "]},
        {"prompt": "x = ", "max_tokens": 4.0, "n_predict": 4.0},
        {"prompt": "x = ", "max_tokens": -1, "n_predict": -1},
        {"prompt": "x = ", "stop": None, "seed": None, "temperature": 1, "logit_bias": {}, "best_of": 1},
        {"prompt": "x = ", "stop": "\n"},
        {"prompt": "x = ", "stop": ["\n", "\r"]},
    ],
    ids=json.dumps,
)
async def test_unusual_fields_of_existing_clients_are_accepted(path: str, fields: dict[str, Any]) -> None:
    async with serving(Script()) as client:
        response = await client.post(path, content=json.dumps(fields))
    assert response.status_code == 200


@pytest.mark.parametrize("path", TEXT_PATHS)
async def test_half_a_surrogate_pair_is_accepted(path: str) -> None:
    async with serving(Script()) as client:
        response = await client.post(path, content=rb'{"prompt": "s = \ud83d", "max_tokens": 4}')
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("content", "why"),
    [
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
async def test_a_meaningless_value_is_refused_in_one_line(content: bytes, why: str) -> None:
    async with serving(Script()) as client:
        response = await client.post("/v1/completions", content=content)
    assert response.status_code == 400
    error = response.json()["error"]
    message = error["message"]
    assert error["param"] == (None if content[:1] == b"[" else message.partition(":")[0])
    assert why in message
    assert "\n" not in message
