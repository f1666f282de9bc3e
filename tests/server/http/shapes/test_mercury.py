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
