"""What is taken out of an answer or put back, and that the bytes of lines that stay are those of the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.editing.judge import Judged
from lacuna_model.editing.tidy import carried, hint, hunks, joined, tidied, without_losses

from .test_judge import change, judged


def first(path: str, old: str, instruction: str, answer: str, before: str = "", after: str = "") -> str:
    return next(iter(tidied(change(path, old, instruction, before, after), answer)))


@given(st.lists(st.sampled_from("abcd\n "), max_size=30), st.lists(st.sampled_from("abcd\n "), max_size=30))
def test_hunks_hold_all_lines_of_both_texts(old: list[str], new: list[str]) -> None:
    found = hunks("".join(old), "".join(new))
    assert "".join(line for hunk in found for line in hunk.old) == "".join(old)
    assert [line.rstrip() for line in "".join(new).split("\n")] == [line.rstrip() for line in joined(found).split("\n")]


def test_tabs_stay_tabs() -> None:
    old = "func f() {\n\tif a {\n\t\tb()\n\t}\n}\n"
    answer = "func f() {\n    if a {\n        c()\n    }\n}\n"
    assert first("a.go", old, "call c", answer) == old.replace("b()", "c()")


def test_changes_of_form_alone_are_taken_back() -> None:
    old = "f('a')\ng(  1)\nh(2)\n"
    assert first("a.py", old, "pass 3 to h", 'f("a")\ng(1)\nh(3)\n') == old.replace("h(2)", "h(3)")
    assert first("a.py", old, "use double quotes", 'f("a")\ng(  1)\nh(2)\n') == old.replace("'a'", '"a"')


def test_marks_of_prose_are_form_unless_mistakes_are_to_be_corrected() -> None:
    old = "We are closed on Mondays.\n\nKind regards\nMax\n"
    marked = "We are closed on Mondays.\n\nKind regards.\nMaria\n"
    assert first("letter.txt", old, "sign as Maria", marked) == old.replace("Max", "Maria")
    assert first("letter.txt", old, "correct the punctuation, and sign as Maria", marked) == marked


def test_the_same_change_is_made_only_where_the_instruction_names_it() -> None:
    old = "a = '<h1>' + title\na += '<b>' + name\nreturn a\n"
    both = "a = '<h1>' + quoted(title)\na += '<b>' + quoted(name)\nreturn a\n"
    assert first("a.py", old, "pass the title to quoted", both) == both.replace("quoted(name)", "name")
    assert first("a.py", old, "use quoted for all of them", both) == both


def test_an_indentation_changes_only_with_a_block() -> None:
    old = "f(1);\n  g(2);\n  h(3);\n"
    assert first("a.js", old, "pass 4 to f", "f(4);\ng(2);\nh(3);\n") == old.replace("1", "4")
    nested = "if (a) {\n  f(1);\n}\n"
    assert first("a.js", "f(1);\n", "only if a", nested) == nested


def test_a_lost_comment_comes_back_and_a_moved_line_does_not() -> None:
    old = "def f(a):\n    b = 1\n    # add it\n    return a + b\n"
    assert first("a.py", old, "return the difference", "def f(a):\n    b = 1\n    return a - b\n") == old.replace(
        "+", "-"
    )
    assert first("c.yaml", "b: 1\na: 2\n", "put a before b", "a: 2\nb: 1\n") == "a: 2\nb: 1\n"


def test_an_answer_that_has_only_the_addition_is_added() -> None:
    old, answer = "  int getX() { return x; }\n", "  int getY() { return y; }\n"
    assert first("A.java", old, "add a getter for y", answer, "class A {\n", "}\n") == f"{old}\n{answer}"


def test_an_answer_that_had_to_go_on_behind_a_missing_comma_ends_there() -> None:
    one = change("a.json", '  "a": {\n    "b": 1\n  },\n', "add c with the value 2", "{\n", '  "d": 3\n}\n')
    answer = '  "a": {\n    "b": 1,\n    "c": 2\n  }\n, "": "and more",\n'
    assert judged(one, answer) == Judged('  "a": {\n    "b": 1,\n    "c": 2\n  },\n')


def test_only_the_key_that_is_named_changes() -> None:
    text, answer = '[a]\nrand = "0.8"\nlog = "0.4"\n', '[a]\nrand = "0.9"\nlog = "0.5"\n'
    assert first("a.toml", text, "update log to 0.5", answer) == text.replace("0.4", "0.5")


OLD = "def a():\n    return 1\n\n\ndef b():\n    x = 2\n    return x\n"


@pytest.mark.parametrize(
    "line",
    [
        "    # ... rest of the code ...",
        "// existing code unchanged",
        "    # Rest of the function remains the same",
        "# ...",
    ],
)
def test_a_comment_that_stands_for_lines_is_found(line: str) -> None:
    assert hint(OLD, f"def a():\n    return 2\n{line}\n") == line.strip()


@pytest.mark.parametrize("line", ["# Returns the same value.", "# The rest of the budget is kept.", "x = [...]"])
def test_other_lines_are_no_hints(line: str) -> None:
    assert hint(OLD, f"{line}\n{OLD}") == ""


def test_a_hint_that_the_old_text_has_is_a_comment_like_any_other() -> None:
    assert hint("# ... rest of the code\na\nb\n", "# ... rest of the code\na\n") == ""


def test_where_lines_would_be_lost_the_old_ones_stay_and_replaced_ones_do_not() -> None:
    assert without_losses("a\nb\nc\nd\n", "a\nd\n") == "a\nb\nc\nd\n"
    assert without_losses("a\nb\nc\n", "a\nx\nc\ny\n") == "a\nx\nc\ny\n"
    assert without_losses("a\nb\n", "x\n") == "a\nb\n"
    assert without_losses("", "a\n") == "a\n"


def test_lines_that_were_put_back_do_not_move_the_probabilities_of_others() -> None:
    assert carried((-1.0, -2.0), "a\nd\n", "a\nb\nc\nd\n") == (-1.0, 0.0, 0.0, -2.0)
    assert carried((), "a\n", "a\n") == (0.0,)
