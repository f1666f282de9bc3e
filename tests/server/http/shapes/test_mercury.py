import msgspec
import pytest

from lacuna_server.http.shapes import mercury
from lacuna_server.http.shapes.mercury import ChatRequest, Edit
from lacuna_server.wire.protocol import ServiceError

FILE = "<|current_file_content|>\n{}\n<|/current_file_content|>"


def asked(content: str, **more: object) -> ChatRequest:
    return msgspec.convert({"messages": [{"role": "user", "content": content}]} | more, ChatRequest)


def test_the_tags_of_continue_are_on_separate_lines() -> None:
    content = FILE.format(
        "current_file_path: a.py\none\n<|code_to_edit|>\ntwo <|cursor|>three\nfour\n<|/code_to_edit|>\nfive\n"
    )
    edit = Edit.parse(content)
    assert (edit.path, edit.before, edit.head, edit.tail) == ("a.py", "one\n", "two ", "three\nfour")
    assert edit.after.startswith("\nfive\n")
    assert edit.show("X, ") == "```\ntwo X, three\nfour\n```"
    assert edit.show("") == "None"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("hello", "lacks <|current_file_content|>"),
        (FILE.format("no region"), "or <|code_to_edit|> within it"),
        (FILE.format("<|code_to_edit|>\nno cursor\n<|/code_to_edit|>"), "lacks <|cursor|>"),
    ],
)
def test_an_edit_without_a_tag_is_refused_with_its_name(content: str, why: str) -> None:
    with pytest.raises(ServiceError) as caught:
        mercury.edit(asked(content), "model")
    assert caught.value.code == "bad_request"
    assert why in str(caught.value)


def test_an_update_without_its_original_is_refused() -> None:
    with pytest.raises(ServiceError, match="original_code"):
        mercury.applied(asked("<|update_snippet|>x<|/update_snippet|>"), "model")


def test_a_chat_without_messages_is_refused() -> None:
    with pytest.raises(ServiceError, match="messages"):
        mercury.chat(ChatRequest(messages=[]), "model")


@pytest.mark.parametrize(
    ("lengths", "limit"),
    [
        ({}, None),
        ({"max_tokens": -1}, None),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
    ],
)
def test_both_names_of_the_maximum_length_are_read(lengths: dict[str, int], limit: int | None) -> None:
    assert asked("", **lengths).limit() == limit


def test_a_message_with_only_opening_tags_is_refused() -> None:
    tags = ("<|recently_viewed_code_snippet|>", "<|current_file_content|><|code_to_edit|>", "<|original_code|>")
    for tag in tags:
        with pytest.raises(ServiceError):
            mercury.chat(asked(tag * 100_000), "model")


@pytest.mark.parametrize("role", ["tool", "function"])
def test_what_a_tool_returned_is_read(role: str) -> None:
    messages = [{"role": "user", "content": "how warm?"}, {"role": role, "content": "21", "tool_call_id": "a"}]
    body = msgspec.convert({"messages": messages}, ChatRequest)
    said = mercury.chat(body, "model").question.chat
    assert [(one.role, one.content) for one in said] == [("user", "how warm?"), ("user", "21")]


def test_a_chat_may_ask_for_several_answers_and_name_many_stops() -> None:
    question = mercury.chat(asked("hello", n=3, stop=[str(number) for number in range(99)]), "model").question
    assert (question.candidates, len(question.stop)) == (3, 99)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("response_format", {"type": "structural_tag"}),
        ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]),
    ],
)
def test_a_field_that_cannot_be_answered_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ServiceError, match=field) as refused:
        mercury.chat(asked("hello", **{field: value}), "model")
    assert refused.value.code == "bad_request"


def test_a_message_in_parts_is_their_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, {"type": "refusal", "refusal": "c"}]
    body = msgspec.convert({"messages": [{"role": "user", "content": parts}]}, ChatRequest)
    assert mercury.chat(body, "model").question.chat[0].content == "abc"
