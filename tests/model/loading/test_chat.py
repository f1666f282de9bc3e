import json
from pathlib import Path

import pytest
from tests.model import tiny
from tests.model.gguf_files import write

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import ChatMessage
from lacuna_model.loading import chat
from lacuna_model.loading.chat import ChatTemplate, read_chat_template
from lacuna_model.loading.chat_rendering import Rendered, Task
from lacuna_model.tokenizer import Tokenizer

TOKENIZER = Tokenizer(tiny.VOCABULARY)
SPECIALS = {"<|im_start|>": 1, "<|im_end|>": 2}
TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def test_a_chat_becomes_the_tokens_that_its_template_says() -> None:
    messages = [ChatMessage("system", "name"), ChatMessage("user", "value = x")]
    tokens = ChatTemplate(TEMPLATE, SPECIALS).tokens(messages, TOKENIZER)
    encode = TOKENIZER.encode
    expected = [1, *encode("system\n"), *encode("name"), 2, *encode("\n"), 1, *encode("user\n"), *encode("value = x")]
    assert tokens == [*expected, 2, *encode("\n"), 1, *encode("assistant\n")]


def test_a_refusal_of_the_template_is_one_line() -> None:
    with pytest.raises(RequestError, match="refuses the messages: no tools"):
        ChatTemplate(TEMPLATE, SPECIALS).tokens([ChatMessage("tool", "x")], TOKENIZER)


def test_the_template_of_a_gguf_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", fields={"tokenizer.chat_template": TEMPLATE})
    template = read_chat_template(path, TOKENIZER)
    assert template is not None
    assert template.tokens([ChatMessage("user", "x")], TOKENIZER)[0] == 1
    assert read_chat_template(write(tmp_path / "other.gguf"), TOKENIZER) is None


@pytest.mark.parametrize("named", ["chat_template.jinja", "tokenizer_config.json"])
def test_the_template_of_a_folder_is_read(tmp_path: Path, named: str) -> None:
    added = [{"content": name, "id": token} for name, token in SPECIALS.items()]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    content = TEMPLATE if named.endswith("jinja") else json.dumps({"chat_template": TEMPLATE})
    (tmp_path / named).write_text(content)
    template = read_chat_template(tmp_path, TOKENIZER)
    assert template is not None
    assert template.tokens([ChatMessage("user", "x")], TOKENIZER).count(1) == 2


GREEDY = {
    "time": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "memory": "{{ 'x' * 10 ** 12 }}",
    "doubling": "{% set n = namespace(t='x') %}{% for a in range(60) %}{% set n.t = n.t ~ n.t %}{% endfor %}{{ n.t }}",
    "output": "{% for a in range(90000) %}{{ '<|im_end|>' * 2 }}{% endfor %}",
    "syntax": "{% for %}",
    "brackets": "{{ " + "(" * 5_000 + ")" * 5_000 + " }}",
    "type": "{{ 1 + 'a' }}",
    "division": "{{ 1 // 0 }}",
}


@pytest.mark.parametrize("named", GREEDY)
def test_a_template_that_takes_too_much_or_fails_is_refused_in_one_line(named: str) -> None:
    with pytest.raises(RequestError, match="chat template") as caught:
        ChatTemplate(GREEDY[named], SPECIALS).tokens([ChatMessage("user", "x")], TOKENIZER)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_template_that_took_too_much_is_not_tried_again_with_as_many_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []
    render = chat.render

    def counted(task: Task) -> Rendered:
        tried.append(len(task.messages))
        return render(task)

    monkeypatch.setattr(chat, "render", counted)
    template = ChatTemplate("{% if messages|length > 1 %}" + GREEDY["time"] + "{% endif %}", SPECIALS)
    said = []
    for roles in (("user", "user"), ("user", "user"), ("user", "assistant", "user")):
        with pytest.raises(RequestError, match="takes too much") as caught:
            template.tokens([ChatMessage(role, "x") for role in roles], TOKENIZER)
        said.append(str(caught.value))
    assert template.tokens([ChatMessage("user", "x")], TOKENIZER) == []
    assert tried == [2, 1]
    assert len(set(said)) == 1


@pytest.mark.parametrize("content", ["[", '{"chat_template": 1, "added_tokens_decoder": 3}', "{" * 20_000])
def test_damaged_settings_of_a_tokenizer_are_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(RequestError, match=r"tokenizer_config\.json is not readable") as caught:
        read_chat_template(tmp_path, TOKENIZER)
    assert "\n" not in str(caught.value)
