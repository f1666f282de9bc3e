import time
from contextlib import suppress

import pytest

from lacuna_server.http.shapes import mercury
from lacuna_server.http.shapes.mercury import ChatRequest, merge
from lacuna_server.http.shapes.openai import Message
from lacuna_server.wire.protocol import ServiceError

FILE = "<|current_file_content|>\n{}\n<|/current_file_content|>"


def test_the_tags_of_continue_are_on_separate_lines() -> None:
    held = "current_file_path: a.py\none\n<|code_to_edit|>\ntwo <|cursor|>three\nfour\n<|/code_to_edit|>\nfive\n"
    asked = mercury.edit(ChatRequest(messages=[Message("user", FILE.format(held))]), "model")
    before, after = "one\ntwo ", "three\nfour\nfive\n\n"
    assert (asked.request.text, asked.request.path) == (before + after, "a.py")
    assert asked.request.regions[0].start == len(before)
    assert asked.show is not None
    assert asked.show("X, ") == "```\ntwo X, three\nfour\n```"
    assert asked.show("") == "None"


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
        mercury.edit(ChatRequest(messages=[Message("user", content)]), "model")
    assert caught.value.code == "bad_request"
    assert why in str(caught.value)


ORIGINAL = """\
import os


def first():
    value = 1
    return value


def second():
    return 2


def third():
    return 3
"""


def test_code_between_two_markers_replaces_the_block_with_the_same_header() -> None:
    update = "# ... existing code ...\n\ndef second():\n    log()\n    return 22\n\n# ... existing code ...\n"
    assert merge(ORIGINAL, update) == ORIGINAL.replace("    return 2\n", "    log()\n    return 22\n")


def test_a_repeated_line_and_a_blank_one_before_new_lines_leave_no_old_line() -> None:
    both = "".join(f"def f{n}(x):\n    if x:\n        y()\n\n    return {n}\n\n\n" for n in (0, 1))
    update = "# ... existing code ...\ndef f1(x):\n    if x:\n        y()\n\n    return 2\n"
    assert merge(both, update) == both.replace("return 1", "return 2")


def test_several_parts_are_merged_at_their_places() -> None:
    update = "import os\nimport sys\n# ... existing code ...\ndef third():\n    return 33\n"
    wanted = ORIGINAL.replace("import os\n", "import os\nimport sys\n").replace("return 3\n", "return 33\n")
    assert merge(ORIGINAL, update) == wanted


@pytest.mark.parametrize("marker", ["{/* ... existing code ... */}", "{ /* … existing code … */ }", "// … rest of it"])
def test_a_marker_may_stand_in_jsx_or_have_the_sign_for_three_dots(marker: str) -> None:
    original = "<div>\n  <Header />\n  <Main />\n  <Footer />\n</div>\n"
    update = f"<div>\n  {marker}\n  <Footer />\n  <Legal />\n</div>\n"
    assert merge(original, update) == original.replace("</div>", "  <Legal />\n</div>")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\r\n"])
def test_new_lines_end_as_those_of_the_original(end: str, last: str) -> None:
    original = "def a():\r\n    return 1\r\n\r\n\r\ndef b():\r\n    return 2" + last
    update = "# ... existing code ...\ndef b():\n    log()\n    return 3\n".replace("\n", end)
    assert merge(original, update) == original.replace("    return 2", "    log()\r\n    return 3")
    assert merge(original, f"x = 1{end}y = 2{end}") == "x = 1\r\ny = 2\r\n"


def test_code_that_is_nowhere_in_the_original_is_refused() -> None:
    with pytest.raises(ServiceError, match=r"'def fourth\(\):'") as caught:
        merge(ORIGINAL, "# ... existing code ...\ndef fourth():\n    return 4\n")
    assert caught.value.code == "bad_request"


@pytest.mark.parametrize("kind", ["all the same", "in turns", "shuffled", "unique and reversed"])
def test_long_texts_are_merged_in_bounded_time(kind: str) -> None:
    """For these texts, comparing every line with every other line would take more than ten seconds."""
    lines = {
        "all the same": ["    pass"] * 1_900,
        "in turns": [f"    a{number % 3}()" for number in range(1_900)],
        "shuffled": [f"    a{number * number % 97}()" for number in range(1_900)],
        "unique and reversed": [f"    a{number}()" for number in range(1_900)],
    }[kind]
    update = "\n".join(["# ... existing code ...", *reversed(lines), "new()", "# ... existing code ..."])
    began = time.process_time()
    with suppress(ServiceError):
        merge("\n".join(lines), update)
    assert time.process_time() - began < 3


def test_repeated_lines_are_found_next_to_unique_lines() -> None:
    original = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    y = 2\n    return x\n"
    update = "# ... existing code ...\n    y = 2\n    y += 1\n    return x\n"
    assert merge(original, update) == original.replace("    y = 2\n", "    y = 2\n    y += 1\n")
