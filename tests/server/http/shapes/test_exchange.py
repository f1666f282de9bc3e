"""What a client demands is honoured, refused by its name, or a hint; a form reaches the engine, from every shape."""

import json
from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.http.scripted import Script, post, serving, snapshots

from lacuna_model.core.params import FillStats, InfillResult, SlotView, Snapshot
from lacuna_server.http.addresses import SHAPES
from lacuna_server.http.endpoint import Shape
from lacuna_server.http.shapes.exchange import REFUSED, Answer, Asked, Exchange, Prompt, final_lines, first_stop
from lacuna_server.http.shapes.openai import TextRequest, chat_style, completion
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
SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
# The answers of the others have a form of their own.
FILLING = pytest.mark.parametrize(
    "shape", [shape for shape in SHAPES if shape.name not in ("edit", "apply")], ids=lambda shape: shape.name
)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
BY_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}


async def refusal(client: httpx2.AsyncClient, shape: Shape[Any], **fields: object) -> str:
    """The field that a request is refused for."""
    response = await client.post(shape.paths[0], json=BODIES[shape.name] | fields)
    error = response.json()["error"]
    assert response.status_code == 400, fields
    field, _, why = error["message"].partition(": ")
    assert why
    assert shape.family == "llama" or error["param"] == field
    return str(field)


@SHAPE
async def test_what_no_answer_has_is_refused_by_its_name_and_hints_change_nothing(shape: Shape[Any]) -> None:
    script = Script()
    async with serving(script) as client:
        for name in REFUSED:
            assert await refusal(client, shape, **{name: [{"a": 1}]}) == name
        assert script.asked == []
        for more in ({}, {name: None for name in REFUSED}, {"logprobs": 0, "tools": []}, {"tool_choice": "auto"}):
            response = await client.post(shape.paths[0], json=BODIES[shape.name] | more | {"top_p": 0.5})
            assert response.status_code == 200, more
    assert all(asked == script.asked[0] for asked in script.asked)


@SHAPE
async def test_tools_are_only_told_of_where_none_is_to_be_called(shape: Shape[Any]) -> None:
    async with serving(Script()) as client:
        for tools, choice in (("tools", "tool_choice"), ("functions", "function_call")):
            asked = {tools: [{"type": "function", "function": {"name": "f", "parameters": {}}}]}
            response = await client.post(shape.paths[0], json=BODIES[shape.name] | asked | {choice: "none"})
            assert response.status_code == 200
            for value in ("auto", None, ["none"]):
                assert await refusal(client, shape, **asked, **{choice: value}) == tools
            assert await refusal(client, shape, **{choice: "required"}) == choice


@SHAPE
async def test_a_wrong_type_names_the_field(shape: Shape[Any]) -> None:
    async with serving(Script()) as client:
        for name, value in {"stop": 5, "n": "two", "response_format": "json", "stream": 1}.items():
            assert await refusal(client, shape, **{name: value}) == name


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name != "apply"], ids=lambda shape: shape.name)
async def test_every_name_of_a_limit_is_honoured(shape: Shape[Any]) -> None:
    script = Script()
    async with serving(script) as client:
        for fields in (
            *({"max_tokens": 7}, {"max_completion_tokens": 7}, {"n_predict": 7}),
            *({"n": 3}, {"n_cmpl": 3}, {"seed": 5}, {"random_seed": 5}),
        ):
            await client.post(shape.paths[0], json=BODIES[shape.name] | fields)
    assert [asked.regions[0].max_tokens for asked in script.asked[:3]] == [7, 7, 7]
    assert [asked.candidates for asked in script.asked[3:5]] == [3, 3]
    assert [asked.options.seed for asked in script.asked[5:]] == [5, 5]


@FILLING
async def test_a_form_is_that_of_the_region(shape: Shape[Any]) -> None:
    script = Script(fills=("{}",))
    asked: list[tuple[dict[str, object], object, str]] = [
        ({"response_format": {"type": "json_object"}}, {"type": "object"}, ""),
        ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, SCHEMA, ""),
        (BY_SCHEMA, SCHEMA, ""),
        ({"json_schema": json.dumps(SCHEMA), "response_format": {"type": "text"}}, SCHEMA, ""),
        ({"json_schema": {}}, {}, ""),
        ({"regex": "[0-9]+"}, None, "[0-9]+"),
        ({"regex": "", "response_format": None}, None, ""),
    ]
    async with serving(script) as client:
        for fields, schema, regex in asked:
            response = await client.post(shape.paths[0], json=BODIES[shape.name] | fields)
            assert response.status_code == 200, fields
            (region,) = script.asked[-1].regions
            assert json.loads(region.json_schema or "null") == schema, fields
            assert region.regex == regex
            assert region.max_tokens == 512 or not (schema or regex)


@SHAPE
async def test_a_form_that_no_answer_has_is_refused_by_its_field(shape: Shape[Any]) -> None:
    script = Script()
    async with serving(script) as client:
        for kind in ({"type": "grammar"}, {"type": "json_schema"}):
            assert await refusal(client, shape, response_format=kind) == "response_format"
        assert await refusal(client, shape, regex="a", json_schema=SCHEMA, stream=True) == "regex"
        if shape.name in ("edit", "apply"):
            assert await refusal(client, shape, json_schema=SCHEMA) == "json_schema"
    assert script.asked == []


@FILLING
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_schema_that_the_engine_refuses_is_refused_by_the_clients_field(
    shape: Shape[Any], stream: bool
) -> None:
    error = ServiceError("bad_request", "json_schema is not supported: Invalid type: unk")
    async with serving(Script(fail=error, silent=True)) as client:
        assert await refusal(client, shape, **BY_SCHEMA, stream=stream) == "response_format"


async def test_an_answer_that_lacks_its_form_is_no_whole_one() -> None:
    body = BODIES["completions"] | {"json_schema": SCHEMA}
    async with serving(Script(fills=("",), status="no_valid_fill")) as client:
        cut = (await client.post("/v1/completions", json=body)).json()["choices"][0]
        plain = (await client.post("/v1/completions", json=BODIES["completions"])).json()["choices"][0]
    assert (cut["text"], cut["finish_reason"]) == ("", "length")
    assert plain["finish_reason"] == "stop"


async def test_an_answer_with_a_form_is_streamed_at_its_end() -> None:
    text = '{\n"name": "x"\n}'
    body = BODIES["completions"] | {"json_schema": {}, "stream": True}
    response = await post(Script(fills=(text,)), "/v1/completions", body)
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    assert [event["choices"][0]["text"] for event in events] == [text]


def test_a_newline_among_the_stops_asks_for_one_line() -> None:
    assert Asked(stop=["\n", "x"]).exchange(Prompt(""), chat_style("m")).request.regions[0].single_line
    assert not Asked(stop=["\n\n"]).exchange(Prompt(""), chat_style("m")).request.regions[0].single_line


@pytest.mark.parametrize(
    ("before", "language"),
    [("# language: python\nx", "python"), ("-- language: lua\n", "lua"), ("// language: c++\n", "c++"), ("x = 1", "")],
)
def test_the_language_is_read_from_the_comment_of_minuet(before: str, language: str) -> None:
    assert Asked().exchange(Prompt(before), chat_style("m")).request.language == language


def canvas(*slots: tuple[str, str], fill: str | None = None) -> Snapshot:
    views = tuple(SlotView(text, state, 0.5) for text, state in slots)
    return Snapshot(1, ("".join(text for text, _ in slots) if fill is None else fill,), (views,))


def exchange(**fields: object) -> Exchange:
    return completion(msgspec.convert({"prompt": "x", "stream": True, **fields}, TextRequest), "model")


def streamed(asked: Exchange, snapshot: Snapshot) -> str:
    return "".join(chunk.choices[0].text for chunk in asked.chunks(snapshot))


@given(
    text=st.text("ab \n", max_size=30),
    stops=st.lists(st.sampled_from(["\n\n", "\n \n", "ab", "b\na", "\n"]), max_size=3),
)
def test_streamed_pieces_add_up_to_the_text_before_the_first_stop(text: str, stops: list[str]) -> None:
    asked = exchange(stop=stops)
    pieces = [streamed(asked, snapshot) for snapshot in snapshots(text)]
    wanted = text[: first_stop(text, stops)[0]]
    (last,) = asked.last(Answer((wanted,)))
    assert "".join([*pieces, last.choices[0].text]) == wanted


@given(text=st.text("ab \n", min_size=1, max_size=30), lines=st.integers(0, 5))
def test_streamed_pieces_never_exceed_the_text_that_a_deadline_keeps(text: str, lines: int) -> None:
    """A deadline keeps only complete lines. They must begin with the pieces that were already sent."""
    kept = "".join(text.splitlines(keepends=True)[:lines])
    asked, sent = exchange(), ""
    for snapshot in snapshots(text):
        if final_lines(snapshot).count("\n") < lines:
            sent += streamed(asked, snapshot)
    assert kept.startswith(sent) or not lines


def test_a_character_of_two_tokens_is_not_final_in_halves() -> None:
    halves = canvas(("a\n", "committed"), ("\ufffd", "committed"), ("\ufffd\nb", "committed"), fill="a\né\nb")
    assert final_lines(halves) == "a"


def test_the_finish_reason_tells_why_a_fill_ended() -> None:
    asked = exchange(max_tokens=4, stop=("!",))
    short, full = FillStats(tokens=3), FillStats(tokens=4)
    assert asked.answer(InfillResult("ok", ("a",), short)).finish == "stop"
    assert asked.answer(InfillResult("ok", ("a",), full)).finish == "length"
    assert asked.answer(InfillResult("ok", ("a!b",), full)).finish == "stop"
    assert asked.answer(InfillResult("deadline", ("a",), short)).finish == "length"
