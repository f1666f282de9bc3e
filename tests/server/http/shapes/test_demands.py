"""In every shape, a field demands what the answer has, is refused by its name, or is a hint that changes nothing."""

import json

import pytest
from tests.server.http.scripted import Script, serving

from lacuna_server.http.shapes.demands import HINTS, NEUTRAL, REFUSED
from lacuna_server.http.shapes.table import SHAPES

CODE = "<|current_file_content|>\n<|code_to_edit|>\nx = <|cursor|>\n<|/code_to_edit|>\n<|/current_file_content|>"
UPDATE = "<|original_code|>\nx = 1\n<|/original_code|>\n<|update_snippet|>\nx = 2\n<|/update_snippet|>"
BODIES: dict[str, dict[str, object]] = {
    "infill": {"input_prefix": "x = ", "input_suffix": "\n"},
    "completion": {"prompt": "x = "},
    "completions": {"prompt": "x = ", "suffix": "\n"},
    "fim": {"prompt": "x = ", "suffix": "\n"},
    "edit": {"messages": [{"role": "user", "content": CODE}]},
    "apply": {"messages": [{"role": "user", "content": UPDATE}]},
    "chat": {"messages": [{"role": "user", "content": "What is x?"}]},
}
# Values by which fields demand something, as their clients write them.
DEMANDING: dict[str, object] = {
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "functions": [{"name": "f"}],
    "tool_choice": "required",
    "function_call": {"name": "f"},
    "logit_bias": {"50256": -100},
    "modalities": ["text", "audio"],
    "audio": {"voice": "alloy", "format": "wav"},
    "grammar": 'root ::= "a"',
}

SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


@SHAPE
async def test_what_no_answer_has_is_refused_by_its_name(shape) -> None:
    script = Script()
    async with serving(script) as client:
        for name in REFUSED:
            if name in shape.body.__struct_fields__:
                continue
            body = BODIES[shape.name] | {name: DEMANDING.get(name, True)}
            for path in shape.paths:
                response = await client.post(path, json=body)
                error = response.json()["error"]
                assert response.status_code == 400, name
                assert error["message"].startswith(f"{name}: "), name
                assert shape.family == "llama" or error["param"] == name
    assert script.asked == []


@SHAPE
async def test_a_field_that_demands_nothing_and_a_hint_change_nothing(shape) -> None:
    script = Script()
    empty = [
        {name: value for name in REFUSED if name not in shape.body.__struct_fields__}
        for value in (None, False, 0, "", [], {})
    ]
    neutral = [{name: value} for name, values in NEUTRAL.items() for value in values]
    hints = [{name: 0.5} for name in HINTS if name not in shape.body.__struct_fields__]
    async with serving(script) as client:
        plain = (await client.post(shape.paths[0], json=BODIES[shape.name])).json()
        for more in [*empty, *neutral, *hints, {"a_field_of_tomorrow": [1]}]:
            response = await client.post(shape.paths[0], json=BODIES[shape.name] | more)
            assert response.status_code == 200, more
            assert response.json().get("choices") == plain.get("choices")
    assert all(asked == script.asked[0] for asked in script.asked)


@SHAPE
@pytest.mark.parametrize("naming", [("tools", "tool_choice"), ("functions", "function_call")])
async def test_tools_are_only_told_of_where_none_is_to_be_called(shape, naming: tuple[str, str]) -> None:
    tools, choice = naming
    asked = BODIES[shape.name] | {tools: DEMANDING[tools]}
    async with serving(Script()) as client:
        for value, status in (("none", 200), ("auto", 400), ("required", 400), (None, 400)):
            response = await client.post(shape.paths[0], json=asked | {choice: value})
            assert response.status_code == status


async def test_a_refused_field_of_any_size_is_refused_by_its_name() -> None:
    async with serving(Script()) as client:
        body = BODIES["completions"] | {"grammar": "a" * 100_000}
        error = (await client.post("/v1/completions", json=body)).json()["error"]
    assert error["message"].startswith("grammar: ")
    assert len(error["message"]) < 200


@SHAPE
async def test_a_wrong_type_names_the_field(shape) -> None:
    async with serving(Script()) as client:
        for name, value in {"stop": 5, "n": "two", "response_format": "json", "bad_words": "x", "stream": 1}.items():
            response = await client.post(shape.paths[0], json=BODIES[shape.name] | {name: value})
            error = response.json()["error"]
            assert response.status_code == 400
            assert error["message"].startswith(f"{name}: ")
            assert shape.family == "llama" or error["param"] == name


@SHAPE
async def test_every_name_of_a_limit_is_honoured(shape) -> None:
    if shape.name == "apply":
        return  # no model writes there
    script = Script()
    async with serving(script) as client:
        for name in ("max_tokens", "max_completion_tokens", "n_predict"):
            await client.post(shape.paths[0], json=BODIES[shape.name] | {name: 7})
        for name in ("n", "n_cmpl"):
            await client.post(shape.paths[0], json=BODIES[shape.name] | {name: 3})
        for name in ("seed", "random_seed"):
            await client.post(shape.paths[0], json=BODIES[shape.name] | {name: 5})
        await client.post(shape.paths[0], json=BODIES[shape.name] | {"min_tokens": 4, "bad_words": ["foo", ""]})
    assert [asked.regions[0].max_tokens for asked in script.asked[:3]] == [7, 7, 7]
    assert [asked.candidates for asked in script.asked[3:5]] == [3, 3]
    assert [asked.options.seed for asked in script.asked[5:7]] == [5, 5]
    (region,) = script.asked[7].regions
    assert (region.min_tokens, region.must_not_contain) == (4, ("foo",))


async def test_the_beginning_of_an_answer_is_refused() -> None:
    messages = [{"role": "user", "content": "What is x?"}, {"role": "assistant", "content": "x", "prefix": True}]
    async with serving(Script()) as client:
        response = await client.post("/v1/chat/completions", content=json.dumps({"messages": messages}))
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "messages"
