"""What a client demands is honoured, refused by its name, or a hint; a form reaches the engine, from every shape."""

import json

import pytest
from tests.server.http.scripted import Script, serving

from lacuna_server.http.shapes.question import HINTS, NEUTRAL, REFUSED, Question
from lacuna_server.http.shapes.table import SHAPES
from lacuna_server.wire.protocol import ServiceError

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
    "grammar": "a" * 100_000,
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
                assert len(error["message"]) < 300
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
async def test_tools_are_only_told_of_where_none_is_to_be_called(shape) -> None:
    async with serving(Script()) as client:
        for tools, choice in (("tools", "tool_choice"), ("functions", "function_call")):
            asked = BODIES[shape.name] | {tools: DEMANDING[tools]}
            for value, status in (("none", 200), ("auto", 400), ("required", 400), (None, 400)):
                response = await client.post(shape.paths[0], json=asked | {choice: value})
                assert response.status_code == status


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


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OBJECT = {"type": "object"}
BY_SCHEMA: list[tuple[dict[str, object], object]] = [
    ({"response_format": {"type": "json_object"}}, OBJECT),
    ({"response_format": {"type": "json_object", "schema": SCHEMA}}, SCHEMA),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, SCHEMA),
    ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, SCHEMA),
    ({"json_schema": SCHEMA}, SCHEMA),
    ({"json_schema": json.dumps(SCHEMA)}, SCHEMA),
    ({"json_schema": {}}, {}),
    ({"guided_json": SCHEMA}, SCHEMA),
    ({"guided_json": json.dumps(SCHEMA)}, SCHEMA),
    ({"guided_json_object": True}, OBJECT),
    ({"structured_outputs": {"json": SCHEMA}}, SCHEMA),
    ({"structured_outputs": {"json_object": True}}, OBJECT),
    ({"json_schema": SCHEMA, "guided_json": SCHEMA, "response_format": {"type": "text"}}, SCHEMA),
]
BY_REGEX: list[tuple[dict[str, object], str]] = [
    ({"guided_regex": "[0-9]+"}, "[0-9]+"),
    ({"regex": "[0-9]+"}, "[0-9]+"),
    ({"structured_outputs": {"regex": "[0-9]+"}}, "[0-9]+"),
    ({"guided_choice": ["yes", "no"]}, "(?:yes|no)"),
    ({"structured_outputs": {"choice": ["yes", "no"]}}, "(?:yes|no)"),
]
NONE: list[dict[str, object]] = [
    {"response_format": None, "guided_json": None, "guided_regex": "", "regex": "", "guided_json_object": False},
    {"response_format": {"type": "text"}, "structured_outputs": {}, "guided_choice": None},
]
REFUSED_FORMS: list[tuple[dict[str, object], str]] = [
    ({"response_format": {"type": "grammar"}}, "response_format"),
    ({"response_format": {"type": "json_schema"}}, "response_format"),
    ({"guided_choice": []}, "guided_choice"),
    ({"guided_choice": [1]}, "guided_choice"),
    ({"structured_outputs": {"grammar": "root ::= x"}}, "structured_outputs"),
    ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs"),
    ({"guided_regex": "a", "json_schema": SCHEMA}, "guided_regex"),
]
FILLING = pytest.mark.parametrize(
    "shape", [shape for shape in SHAPES if shape.name not in ("edit", "apply")], ids=lambda shape: shape.name
)


@FILLING
async def test_a_schema_is_that_of_the_region(shape) -> None:
    script = Script(fills=("{}",))
    async with serving(script) as client:
        for fields, schema in BY_SCHEMA:
            response = await client.post(shape.paths[0], json=BODIES[shape.name] | fields)
            assert response.status_code == 200, fields
            (region,) = script.asked[-1].regions
            assert (json.loads(region.json_schema), region.regex) == (schema, ""), fields
            assert region.max_tokens == 512


@FILLING
async def test_a_regular_expression_and_choices_are_that_of_the_region(shape) -> None:
    script = Script(fills=("1",))
    async with serving(script) as client:
        for fields, regex in BY_REGEX:
            assert (await client.post(shape.paths[0], json=BODIES[shape.name] | fields)).status_code == 200, fields
            (region,) = script.asked[-1].regions
            assert (region.regex, region.json_schema) == (regex, ""), fields
        for fields in NONE:
            assert (await client.post(shape.paths[0], json=BODIES[shape.name] | fields)).status_code == 200, fields
            (region,) = script.asked[-1].regions
            assert (region.regex, region.json_schema) == ("", ""), fields


@SHAPE
async def test_a_form_that_no_answer_has_is_refused_by_its_field(shape) -> None:
    script = Script()
    asked = [*REFUSED_FORMS]
    if shape.name in ("edit", "apply"):
        asked += [({"json_schema": SCHEMA}, "json_schema"), ({"guided_choice": ["a"]}, "guided_choice")]
    async with serving(script) as client:
        for fields, name in asked:
            for stream in (False, True):
                response = await client.post(shape.paths[0], json=BODIES[shape.name] | fields | {"stream": stream})
                assert response.status_code == 400, fields
                assert response.json()["error"]["message"].startswith(name), fields
    assert script.asked == []


@SHAPE
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_schema_that_the_engine_refuses_is_refused_by_the_clients_field(shape, stream: bool) -> None:
    if shape.name in ("edit", "apply"):
        return  # they have no form
    why = "not supported: Invalid type: unk"
    error = ServiceError("bad_request", f"json_schema is {why}")
    async with serving(Script(fail=error, silent=True)) as client:
        body = BODIES[shape.name] | {"guided_json": {"type": "unk"}, "stream": stream}
        response = await client.post(shape.paths[0], json=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == f"guided_json: {why}"


async def test_an_answer_that_lacks_its_form_is_no_whole_one() -> None:
    body = BODIES["completions"] | {"json_schema": SCHEMA}
    async with serving(Script(fills=("",), status="no_valid_fill")) as client:
        cut = (await client.post("/v1/completions", json=body)).json()["choices"][0]
        plain = (await client.post("/v1/completions", json=BODIES["completions"])).json()["choices"][0]
    assert (cut["text"], cut["finish_reason"]) == ("", "length")
    assert plain["finish_reason"] == "stop"


async def test_an_answer_with_a_form_is_streamed_at_its_end() -> None:
    text = '{\n"name": "x"\n}'
    async with serving(Script(fills=(text,))) as client:
        response = await client.post(
            "/v1/completions", json=BODIES["completions"] | {"json_schema": {}, "stream": True}
        )
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    assert [event["choices"][0]["text"] for event in events] == [text]


def test_a_newline_among_the_stops_asks_for_one_line() -> None:
    assert Question(before="", stop=("\n", "x")).request().regions[0].single_line
    assert not Question(before="", stop=("\n\n",)).request().regions[0].single_line


@pytest.mark.parametrize(
    ("before", "language"),
    [("# language: python\nx", "python"), ("-- language: lua\n", "lua"), ("// language: c++\n", "c++"), ("x = 1", "")],
)
def test_the_language_is_read_from_the_comment_of_minuet(before: str, language: str) -> None:
    assert Question(before=before).request().language == language
