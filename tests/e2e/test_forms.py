"""The real model keeps to the form that a client demands over HTTP, in every shape."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx2
from tests.server.live_service import live

from lacuna_model.hub import models
from lacuna_server.wire.config import ServerConfig

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
BY_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}}
ASKED: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": "A person as JSON: ", "suffix": "\n"},
    "/v1/fim/completions": {"prompt": "A person as JSON: "},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Describe a person."}]},
    "/infill": {"input_prefix": "A person as JSON: ", "input_suffix": "\n"},
    "/completion": {"prompt": "A person as JSON: "},
}


def text_of(answer: Any) -> str:
    found = answer["choices"][0]["text"] if "choices" in answer else answer["content"]
    assert isinstance(found, str)
    return found


async def test_answers_have_the_form_that_is_demanded(coder_path: Path) -> None:
    settings = {"engine": ServerConfig().engine, "model": models.DEFAULT_MODEL, "threads": 1, "draft_model": "none"}
    async with (
        live(**settings) as (_, address),
        httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False, timeout=300) as client,
    ):
        async with asyncio.timeout(300):
            while (await client.get("/health")).status_code != 200:
                await asyncio.sleep(0.1)
        for path, body in ASKED.items():
            person = json.loads(text_of((await client.post(path, json=body | BY_SCHEMA)).json()))
            assert set(person) == {"name", "age"}
            assert isinstance(person["age"], int)
            chosen = await client.post(path, json=body | {"regex": r"c\+\+|a short one"})
            assert text_of(chosen.json()) in ("c++", "a short one")
            matched = await client.post(path, json=body | {"regex": "[A-Z][a-z]{1,9} [0-9]{2}"})
            assert re.fullmatch("[A-Z][a-z]{1,9} [0-9]{2}", text_of(matched.json()))
        # A chat of any JSON that is cut off, and one that is streamed.
        path, chat = "/v1/chat/completions", ASKED["/v1/chat/completions"]
        body = chat | {"response_format": {"type": "json_object"}, "max_tokens": 8}
        cut = (await client.post(path, json=body)).json()
        assert cut["choices"][0]["finish_reason"] == "length"
        assert isinstance(json.loads(text_of(cut)), dict)
        streamed = (await client.post(path, json=chat | BY_SCHEMA | {"stream": True})).text
        events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
        assert set(json.loads("".join(event["choices"][0]["delta"]["content"] for event in events))) == {"name", "age"}
