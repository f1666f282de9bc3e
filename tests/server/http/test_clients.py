"""Requests as the sources of existing clients send them, and answers that are read as each client reads them."""

import asyncio
import json
import re

import httpx2
import pytest

from lacuna_server.wire.protocol import ServiceError

from .scripted import Script, post, serving

BEFORE = "def area(radius):\n    return "
AFTER = "\n\nprint(area(2))\n"
LINES = "radius * radius\n    # a comment\n    done()"
COUNTS = ("n", "ms", "per_token_ms", "per_second")
TIMINGS = [f"timings/{what}_{count}" for what in ("prompt", "predicted") for count in COUNTS]
RESPONSE_FIELDS = ["content", *TIMINGS, "truncated", "tokens_cached"]


def llama_vim(**changes: object) -> dict[str, object]:
    return {
        "id_slot": 0,
        "input_prefix": "def area(radius):\n",
        "input_suffix": AFTER,
        "input_extra": [{"text": "PI = 3\n", "time": 12.5, "filename": "const.py"}],
        "prompt": "    return ",
        "n_predict": 128,
        "stop": [],
        "n_indent": 4,
        "top_k": 40,
        "top_p": 0.90,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": 1000,
        "response_fields": RESPONSE_FIELDS,
        "model": "",
        **changes,
    }


def events(response: httpx2.Response) -> list[dict]:
    """The data of server-sent events, read line by line up to [DONE], as Continue's streamSse and minuet do it."""
    assert response.headers["content-type"].startswith("text/event-stream")
    found = []
    for line in response.text.splitlines():
        if line.startswith("data:") and line.removeprefix("data:").strip() != "[DONE]":
            found.append(json.loads(line.removeprefix("data:")))
    return found


async def test_llama_vim() -> None:
    script = Script(fills=("radius ** 2",))
    response = await post(script, "/infill", llama_vim(), headers={"Authorization": "Bearer key"})
    raw = response.text
    # The two patterns of s:fim_on_response, which silently drops an answer that does not match.
    assert re.match(r"\s*{", raw)
    assert re.search(r'"content"\s*:"', raw)
    shown = json.loads(raw)
    assert shown["content"].split("\n") == ["radius ** 2"]
    assert set(shown) == set(RESPONSE_FIELDS)
    assert (shown["timings/predicted_n"], shown["timings/predicted_ms"]) == (4, 40.0)
    assert (shown["timings/prompt_n"], shown["timings/prompt_ms"], shown["tokens_cached"]) == (5, 10.0, 15)
    (asked,) = script.asked
    assert asked.text == BEFORE + AFTER
    assert asked.regions[0].start == len(BEFORE)
    assert asked.regions[0].max_tokens == 128
    assert [(snippet.path, snippet.text) for snippet in asked.snippets] == [("const.py", "PI = 3\n")]


async def test_llama_vim_gets_complete_lines_when_its_time_is_over() -> None:
    script = Script(fills=(LINES,), hold=asyncio.Event())
    response = await post(script, "/infill", llama_vim(t_max_predict_ms=0.001))
    assert response.json()["content"] == "radius * radius"
    assert script.tickets[0].cancelled


@pytest.mark.parametrize("limit", [0, -1])
async def test_llama_vim_without_a_limit_of_time_gets_all_lines(limit: int) -> None:
    response = await post(Script(fills=(LINES,)), "/infill", llama_vim(t_max_predict_ms=limit))
    assert response.json()["content"] == LINES


async def test_llama_vim_warm_up() -> None:
    script = Script()
    body = llama_vim(input_prefix="", input_suffix="", prompt="", n_predict=0, samplers=[], response_fields=[""])
    assert (await post(script, "/infill", body)).json() == {}
    assert script.asked == []


async def test_llama_vscode() -> None:
    body = {name: llama_vim()[name] for name in ("input_prefix", "input_suffix", "input_extra", "prompt", "n_predict")}
    body |= {"top_k": 40, "top_p": 0.99, "stream": False, "samplers": ["top_k", "top_p", "infill"], "n_cmpl": 3}
    script = Script(fills=("one", "two", "three", "four"))
    async with serving(script) as client:
        several = (await client.post("/infill", json=body)).json()
        single = (await client.post("/infill", json=body | {"n_cmpl": 1, "lora": [{"id": 0, "scale": 0.5}]})).json()
        warm_up = (await client.post("/infill", json=body | {"n_cmpl": 1, "n_predict": 0})).json()
        health = (await client.get("/health")).json()
    assert [one["content"] for one in several] == ["one", "two", "three"]
    assert single["content"] == "one"
    assert single["timings"]["predicted_per_second"] == pytest.approx(100)
    assert warm_up["content"] == ""
    assert health["status"] == "ok"


async def test_continue_llama_cpp() -> None:
    body = {
        "prompt": f"<fim_prefix>{BEFORE}<fim_suffix>{AFTER}<fim_middle>",
        "stream": True,
        "n_predict": 4096,
        "stop": ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>", "<|endoftext|>", "\n\n"],
        "top_k": None,
        "temperature": 0.01,
    }
    script = Script(fills=(LINES + "\n\nmore",))
    chunks = events(await post(script, "/completion", body))
    assert "".join(chunk["content"] for chunk in chunks if chunk["content"]) == LINES
    assert script.asked[0].text == BEFORE + AFTER


async def test_llama_cpp_streams_all_answers_and_tells_the_stop_strings_that_they_end_before() -> None:
    body = {"prompt": "a", "n_cmpl": 2, "stop": [";", "b"], "stream": True}
    chunks = events(await post(Script(fills=("1; b", "2")), "/completion", body))
    told = [(chunk["index"], chunk["content"], chunk.get("stop_type"), chunk.get("stopping_word")) for chunk in chunks]
    assert told == [(0, "1", None, None), (0, "", "word", ";"), (1, "2", None, None), (1, "", "eos", "")]


async def test_zed() -> None:
    prompt = f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>"
    stop = ["<|endoftext|>", "<|fim_middle|>"]
    body = {"model": "qwen2.5-coder:3b", "prompt": prompt, "max_tokens": 64, "stop": stop, "environment": None}
    script = Script(fills=("radius ** 2",))
    response = await post(script, "/v1/completions", body)
    shown = response.json()
    assert shown["choices"][0]["text"] == "radius ** 2"
    assert shown["usage"] == {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}
    assert script.asked[0].text == BEFORE + AFTER
    assert script.asked[0].regions[0].start == len(BEFORE)


async def test_continue_inception_autocomplete() -> None:
    body = {
        "model": "mercury-coder-small",
        "prompt": BEFORE,
        "suffix": "<|endoftext|>",
        "max_tokens": 150,
        "temperature": 0.0,
        "presence_penalty": 1.5,
        "stop": ["<|endoftext|>", "\n\n", "\n \n"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    script = Script(fills=(LINES + "\n \nmore",))
    *chunks, last = events(await post(script, "/v1/completions", body))
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == LINES
    assert len(chunks) > 2
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 24)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert script.asked[0].text == BEFORE


MINUET = {"model": "qwen", "max_tokens": 56, "top_p": 0.9, "prompt": f"# language: python\n{BEFORE}", "suffix": AFTER}


async def test_three_simultaneous_requests_of_minuet_are_answered() -> None:
    script = Script(fills=("radius ** 2",))
    async with serving(script) as client:
        body = MINUET | {"stream": False}
        found = await asyncio.gather(*(client.post("/v1/completions", json=body) for _ in range(3)))
    assert [one.json()["choices"][0]["text"] for one in found] == ["radius ** 2"] * 3
    assert [asked.language for asked in script.asked] == ["python"] * 3


ZED_EDIT = (
    "<|recently_viewed_code_snippets|>\n<|recently_viewed_code_snippet|>\ncode_snippet_file_path: src/const.py\n"
    "PI = 3\n<|/recently_viewed_code_snippet|>\n<|/recently_viewed_code_snippets|>\n"
    "<|current_file_content|>\ncurrent_file_path: src/area.py\nimport math\n\n"
    "<|code_to_edit|>\ndef area(radius):\n    return <|cursor|><|/code_to_edit|>\n\n\nprint(area(2))\n"
    "<|/current_file_content|>\n<|edit_diff_history|>\n--- a\n+++ b\n<|/edit_diff_history|>\n"
)


async def test_zed_next_edit() -> None:
    body = {"model": "mercury-coder", "messages": [{"role": "user", "content": ZED_EDIT}], "stream": False, "stop": []}
    script = Script(fills=("radius ** 2",))
    shown = (await post(script, "/v1/edit/completions", body)).json()
    text = shown["choices"][0]["message"]["content"]
    region = text.removeprefix("```\n").removesuffix("\n```")
    assert region == "def area(radius):\n    return radius ** 2"
    (asked,) = script.asked
    assert asked.text == "import math\n\ndef area(radius):\n    return \n\nprint(area(2))\n"
    assert asked.path == "src/area.py"
    assert asked.snippets[0].path == "src/const.py"


async def test_continue_next_edit_streamed() -> None:
    content = [{"type": "text", "text": ZED_EDIT}]
    body = {"model": "mercury-coder", "messages": [{"role": "user", "content": content}], "stream": True}
    chunks = events(await post(Script(fills=("radius ** 2",)), "/v1/edit/completions", body))
    said = "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks)
    assert said == "```\ndef area(radius):\n    return radius ** 2\n```"
    nothing = Script(fills=("",))  # to edit
    shown = (await post(nothing, "/v1/edit/completions", body | {"stream": False})).json()
    assert shown["choices"][0]["message"]["content"] == "None"


async def test_continue_apply_streamed_and_not_streamed() -> None:
    content = (
        "<|original_code|>\ndef one():\n    return 1\n\ndef two():\n    return 2\n<|/original_code|>\n\n"
        "<|update_snippet|>\n# ... existing code ...\ndef two():\n    return 22\n<|/update_snippet|>"
    )
    body = {"model": "mercury-coder", "messages": [{"role": "user", "content": content}], "max_tokens": 4096}
    script = Script()
    async with serving(script) as client:
        whole = (await client.post("/v1/apply/completions", json=body)).json()
        chunks = events(await client.post("/v1/apply/completions", json=body | {"stream": True}))
    wanted = "def one():\n    return 1\n\ndef two():\n    return 22"
    assert whole["choices"][0]["message"]["content"] == wanted
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks) == wanted
    assert script.asked == []


async def test_mercury_diffusing() -> None:
    body = {"model": "mercury", "prompt": BEFORE, "suffix": AFTER, "stream": True, "diffusing": True}
    chunks = events(await post(Script(fills=(LINES,)), "/v1/fim/completions", body))
    shown = ""
    for chunk in chunks:
        shown = chunk["choices"][0]["delta"]["content"]  # every chunk replaces the earlier text
    assert shown == LINES
    shares = [chunk["diffusion_meta"]["diffusion_progress"] for chunk in chunks]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "content", [ZED_EDIT, f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>"], ids=["edit", "sentinels"]
)
async def test_chat_accepts_the_prompts_of_the_other_endpoints(content: str) -> None:
    messages = [{"role": "system", "content": "You fill gaps."}, {"role": "user", "content": content}]
    async with serving(Script(fills=("radius ** 2",))) as client:
        shown = (await client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": -1})).json()
    assert "radius ** 2" in shown["choices"][0]["message"]["content"]
    assert shown["object"] == "chat.completion"


@pytest.mark.parametrize(
    "question", ["What do <|fim_prefix|> and <|fim_suffix|> mean?", "explain <|code_to_edit|> and <|original_code|>"]
)
async def test_a_question_about_marks_is_answered_by_the_model(question: str) -> None:
    script = Script()
    body = {"messages": [{"role": "user", "content": question}]}
    assert (await post(script, "/v1/chat/completions", body)).status_code == 200
    assert script.asked[0].task.messages[-1].content == question
    assert script.tickets[0].submission.document not in ("", script.asked[0].path)


async def test_any_other_chat_is_answered_by_the_model() -> None:
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "What is x?"}]
    script = Script(fills=("x is a name.\nIt has a value.",))
    shown = (await post(script, "/v1/chat/completions", {"messages": messages})).json()
    assert shown["choices"][0]["message"] == {"role": "assistant", "content": "x is a name.\nIt has a value."}
    (asked,) = script.asked
    assert [(one.role, one.content) for one in asked.task.messages] == [("system", "Be brief."), ("user", "What is x?")]
    assert (asked.text, asked.regions[0].max_tokens) == ("", 512)


async def test_an_answer_to_a_chat_is_streamed() -> None:
    body = {"messages": [{"role": "user", "content": "What is x?"}], "stream": True, "max_tokens": 9000}
    script = Script(fills=("x is a name.\nIt has a value.",))
    chunks = events(await post(script, "/v1/chat/completions", body))
    said = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
    assert "".join(said) == "x is a name.\nIt has a value."
    assert len([one for one in said if one]) > 1
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert script.asked[0].regions[0].max_tokens == 2048


@pytest.mark.parametrize(
    ("role", "content", "why"),
    [
        ("narrator", "x", "the role 'narrator'"),
        ("", "x", "the role ''"),
        ("user", " ", "the last one is empty"),
        ("user", [{"type": "image_url", "image_url": {"url": "data:"}}], "messages: a part is 'image_url'"),
    ],
)
async def test_a_chat_that_no_template_has_is_refused_with_a_reason(role: str, content: object, why: str) -> None:
    asked = {"messages": [{"role": role, "content": content}]}
    response = await post(Script(), "/v1/chat/completions", asked)
    assert response.status_code == 400
    assert why in response.json()["error"]["message"]


async def test_a_refusal_has_the_shape_that_the_client_expects() -> None:
    script = Script(refuse=ServiceError("overloaded", "the queue is full", retry_after_ms=2500))
    async with serving(script) as client:
        llama = await client.post("/infill", json=llama_vim())
        openai = await client.post("/v1/completions", json=MINUET)
    assert (llama.status_code, openai.status_code) == (503, 503)
    assert llama.headers["retry-after"] == openai.headers["retry-after"] == "3"
    assert llama.json() == {"error": {"code": 503, "message": "the queue is full", "type": "unavailable_error"}}
    assert openai.json()["error"]["code"] == "overloaded"


async def test_a_fault_during_a_stream_is_sent_as_an_event() -> None:
    script = Script(fills=(LINES,), fail=ServiceError("worker_crashed", "the model process ended"))
    response = await post(script, "/v1/completions", MINUET | {"stream": True})
    assert events(response)[-1]["error"]["code"] == "worker_crashed"
    assert "[DONE]" not in response.text
