"""Edits by instruction with a model that writes a given text."""

import ast
import time
from collections.abc import Generator
from typing import Any

import msgspec
import pytest
from tests.model.fim import tiny_fim

from lacuna_model.core.context import Layout, finished
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import (
    AnswerChat,
    ChatMessage,
    DecodeOptions,
    EditLines,
    FollowChanges,
    InfillRequest,
    InfillResult,
    PastChange,
    Region,
    Snapshot,
)
from lacuna_model.editing import editor
from lacuna_model.editing.editor import LATE, UNCHANGED
from lacuna_model.editing.prompts import edit_layout
from lacuna_model.engine import Engine
from lacuna_model.fim.drafts import OldTextDrafts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.group_fill import FilledGroup, fill_group

from .conftest import Writes

BEFORE = "import math\n\n\n"
OLD = "def area(r):\n    return math.pi * r\n"
AFTER = "\n\nprint(area(1))\n"
TEXT = BEFORE + OLD + AFTER


def request(text: str = TEXT, old: str = OLD, instruction: str = "square r", **options: object) -> InfillRequest:
    start = len(text[: text.index(old)].encode())
    region = Region(start, start + len(old.encode()), max_tokens=200)
    return InfillRequest(text, (region,), EditLines(instruction), path="a.py", options=DecodeOptions(**options))  # type: ignore[arg-type]


def test_the_region_is_rewritten_and_nothing_else(writes: Writes) -> None:
    new = "def area(r):\n    return math.pi * r ** 2\n"
    result = writes(f"{new}```\n\nprint('more')\n").fill(request())
    assert (result.status, result.message) == ("ok", "")
    assert result.fills == (new,)


def test_unchanged_stretches_cost_few_passes(writes: Writes) -> None:
    old = "".join(f"value{index} = total + {index}\n" for index in range(20))
    new = old.replace("total + 7", "name + 7")
    result = writes(f"{new}```").fill(request(old + AFTER, old))
    assert result.fills == (new,)
    assert result.stats.nfe * 3 < result.stats.tokens


def test_the_indentation_of_the_first_line_stays(writes: Writes) -> None:
    text = "class A:\n    def b(self):\n        return 1\n\n    c = 2\n"
    old = "    def b(self):\n        return 1\n"
    result = writes(" def b(self):\n        return 2\n```").fill(request(text, old, "return 2"))
    assert result.fills == (old.replace("return 1", "return 2"),)


def test_a_text_that_breaks_the_file_is_not_taken(writes: Writes) -> None:
    asked = request()
    result = writes("def area(r:\n    return 1\n```").fill(asked)
    ast.parse(asked.filled(result.fills))


def test_a_hint_at_lines_is_refused(writes: Writes) -> None:
    old = "def area(r):\n    a = 1\n    b = 2\n    c = 3\n    return a + b + c\n"
    result = writes("def area(r):\n    a = 5\n    # ... rest of the code\n```").fill(request(old + AFTER, old))
    assert (result.status, result.fills) == ("no_valid_fill", (old,))
    assert result.refused != ()
    assert "leaves out lines: # ... rest of the code" in result.message


def test_an_end_that_the_model_left_out_stays(writes: Writes) -> None:
    more = "\n\ndef total(values):\n    value = sum(values)\n    return value\n"
    result = writes("def area(r):\n    return 3 * r\n```").fill(request(BEFORE + OLD + more + AFTER, OLD + more))
    assert result.fills == (OLD.replace("math.pi", "3") + more,)


def test_an_answer_that_loses_a_name_is_asked_for_once_more(writes: Writes, monkeypatch: pytest.MonkeyPatch) -> None:
    right = "def area(r):\n    return math.pi * r ** 2\n"
    asked: list[str] = []

    def layout(model: LoadedFim, *args: Any) -> Layout:
        found = edit_layout(model, *args)
        asked.append(model.tokenizer.decode([token for segment in found.segments for token in segment]))
        if len(asked) == 2:
            writes(f"{right}```")
        return found

    monkeypatch.setattr(editor, "edit_layout", layout)
    result = writes("def size(r):\n    return math.pi * r ** 2\n```").fill(request())
    assert (result.status, result.message, result.fills) == ("ok", "", (right,))
    assert ["no longer defines area" in one for one in asked] == [False, True]


def test_an_answer_that_is_wrong_twice_is_refused_in_one_sentence(writes: Writes) -> None:
    result = writes("def size(r):\n    return math.pi * r ** 2\n```").fill(request())
    assert (result.status, result.fills) == ("no_valid_fill", (OLD,))
    assert result.message == "the new text no longer defines area, which the file still uses"


def test_an_answer_that_may_lose_something_twice_is_taken_with_a_warning(writes: Writes) -> None:
    old = "def area(r):\n    # of a circle\n    return math.pi * r\n"
    new = "def area(r):\n    return math.pi * r ** 2\n"
    result = writes(f"{new}```").fill(request(BEFORE + old, old))
    assert (result.status, result.message) == ("ok", "")
    assert result.fills == (old.replace("* r", "* r ** 2"),)  # the comment comes back
    lost = "def size(r):\n    return math.pi * r ** 2\n"
    result = writes(f"{lost}```").fill(request(BEFORE + OLD, OLD))
    assert (result.status, result.fills) == ("ok", (lost,))
    assert result.warnings == (result.warning,) == ("the new text no longer defines area",)


def test_line_ends_and_blanks_of_lines_that_stay_are_kept(writes: Writes) -> None:
    old = "def area(r):\r\n    a = r  \n    return math.pi * a\r\n"
    asked = request(BEFORE + old, old, "return math.pi times a square")
    result = writes("def area(r):\n    a = r\n    return math.pi * a ** 2\n```").fill(asked)
    assert result.fills == (old.replace("* a", "* a ** 2"),)


def test_a_text_without_an_end_is_not_taken(writes: Writes) -> None:
    endless = "def area(r):\n" + "".join(f"    value = {index}\n" for index in range(200))
    result = writes(endless).fill(request())
    assert (result.status, result.fills) == ("no_valid_fill", (OLD,))
    assert "200 tokens more" in result.message


def test_a_deadline_leaves_the_text_as_it_is(writes: Writes) -> None:
    steps = writes(f"{OLD}```").stream(request(deadline_ms=1))
    time.sleep(0.005)
    result: InfillResult = finished(steps)
    assert (result.status, result.message, result.fills) == ("deadline", LATE, (OLD,))


@pytest.mark.parametrize("instruction", ["", " ", "\n\t"])
def test_an_empty_instruction_is_refused(writes: Writes, instruction: str) -> None:
    with pytest.raises(RequestError, match="the instruction is empty"):
        writes("").fill(request(instruction=instruction))


def test_a_model_without_a_chat_template_takes_no_instructions() -> None:
    with pytest.raises(RequestError, match="no chat template"):
        Engine(tiny_fim.loaded()).fill(request())


def test_a_chat_is_answered(writes: Writes) -> None:
    chat = (ChatMessage("user", "What is x?"),)
    result = writes("x is a name.").fill(InfillRequest("", (Region(0, 0, max_tokens=40),), task=AnswerChat(chat)))
    assert (result.status, result.fills) == ("ok", ("x is a name.",))


FOLLOWED = "a = 1\nb = 2\nc = 3\n"


def follows(*changes: PastChange, rewritten: str = FOLLOWED) -> InfillRequest:
    """A request to rewrite all lines but the last as the changes say."""
    end = len(rewritten[: rewritten.rindex("c =")])
    return InfillRequest(rewritten, (Region(0, end, max_tokens=40),), FollowChanges(changes), path="a.py")


def test_a_rewritten_region_loses_no_line(writes: Writes) -> None:
    """zed#52770: nobody asks for a deletion. The model ends after the first line, and all lines stay."""
    result = writes("a = 9\n").fill(follows())
    assert (result.status, result.fills, result.message) == ("ok", ("a = 1\nb = 2\n",), UNCHANGED)


def test_after_a_deletion_lines_may_be_deleted(writes: Writes) -> None:
    deletion, change = PastChange("a.py", "x = 1\ny = 1\n", "y = 1\n"), PastChange("a.py", "y = 1\n", "y = 2\n")
    assert writes("b = 2\n").fill(follows(deletion)).fills == ("b = 2\n",)
    assert writes("b = 2\n").fill(follows(change, deletion)).fills == ("b = 2\n",)
    assert writes("b = 2\n").fill(follows(deletion, change)).fills == ("a = 1\nb = 2\n",)


def test_a_rewritten_region_says_how_likely_its_lines_are(writes: Writes) -> None:
    result = writes("a = 1\nb = 9\n").fill(follows(PastChange("a.py", "z = 2", "z = 9")))
    assert result.fills == ("a = 1\nb = 9\n",)
    (lines,) = result.likelihoods
    assert len(lines) == 2
    assert all(-0.1 < line <= 0.0 for line in lines)
    below = writes("a = 1\nb = 9\n").fill(follows(rewritten=f"\n\n{FOLLOWED}"))
    assert below.fills == ("\n\na = 1\nb = 9\n",)
    assert below.likelihoods[0][:2] == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(2))
def test_the_old_text_as_a_draft_does_not_change_the_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_fim.loaded(seed)
    (region,) = follows().regions
    regions = (msgspec.structs.replace(region, max_tokens=30),)
    asked = msgspec.structs.replace(follows(), regions=regions, options=DecodeOptions(syntax=False))
    written: list[list[tuple[str, ...] | None]] = []

    def recorded(*args: Any, **options: Any) -> Generator[Snapshot, None, FilledGroup]:
        found = yield from fill_group(*args, **options)
        written[-1].append(found.verdict.fills)
        return found

    monkeypatch.setattr(editor, "fill_group", recorded)
    for drafted in (True, False):
        if not drafted:
            monkeypatch.setattr(OldTextDrafts, "proposal", lambda self: None)
        written.append([])
        Engine(model).fill(asked)
    with_draft, without = written
    assert with_draft == without
    assert len(with_draft) == 1


def test_a_model_without_a_token_between_files_rewrites_nothing_without_an_instruction() -> None:
    model = tiny_fim.loaded()
    model.tokenizer.fim = msgspec.structs.replace(model.fim, file_sep=None)
    with pytest.raises(RequestError, match="no token that separates files"):
        Engine(model).fill(follows())


def test_a_region_of_too_many_tokens_is_refused_with_the_limit(writes: Writes) -> None:
    line = "x" * 60 + "\n"
    with pytest.raises(RequestError, match="tokens; at most 4,000"):
        writes("").fill(request(line * 200, line * 200))


@pytest.mark.parametrize(
    ("rule", "keeps"),
    [
        ({"regex": "(?:total|value)"}, lambda answer: answer in ("total", "value")),
        ({"json_schema": '{"type": "array"}'}, lambda answer: answer.startswith("[") and answer.endswith("]")),
        ({"must_not_contain": ("name",)}, lambda answer: "name" not in answer),
    ],
    ids=["regex", "schema", "words"],
)
def test_an_answer_to_a_chat_keeps_the_rule_of_its_region(writes: Writes, rule: dict[str, Any], keeps: Any) -> None:
    engine = writes("name = total")
    chat = (ChatMessage("user", "x"),)
    plain = engine.fill(InfillRequest("", (Region(0, 0, max_tokens=20),), task=AnswerChat(chat)))
    assert not keeps(plain.fills[0])
    ruled = engine.fill(InfillRequest("", (Region(0, 0, max_tokens=20, **rule),), task=AnswerChat(chat)))
    assert ruled.status == "ok"
    assert keeps(ruled.fills[0])
