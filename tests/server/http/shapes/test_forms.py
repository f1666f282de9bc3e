"""What a client demands of the form of an answer reaches the engine, from every shape and by every name."""

import json

import pytest
from tests.server.http.scripted import Script, serving

from lacuna_server.http.shapes.table import SHAPES
from lacuna_server.wire.protocol import ServiceError

from .test_demands import BODIES, SHAPE

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OBJECT = {"type": "object"}
BY_SCHEMA: list[tuple[dict[str, object], object]] = [
    ({"response_format": {"type": "json_object"}}, OBJECT),
    ({"response_format": {"type": "json_object", "schema": SCHEMA}}, SCHEMA),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}},
        SCHEMA,
    ),
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
REFUSED: list[tuple[dict[str, object], str]] = [
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
    asked = [*REFUSED]
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
