from lacuna_model.core.params import Snippet
from lacuna_model.next_edit.blocks import as_block, as_it_was, deletes

CHANGE = as_block("/src/a.py", "x = 1\ny = 2\n", "x = 1\ny = 3\n")


def test_a_change_is_a_section_of_old_and_new_lines() -> None:
    assert CHANGE.path == "a.py.diff"
    assert CHANGE.text == "original:\nx = 1\ny = 2\nupdated:\nx = 1\ny = 3"


def test_lines_before_the_last_change_of_their_file() -> None:
    now = "w = 0\nx = 1\ny = 3\nz = 4\n"
    assert as_it_was(now, "a.py", [CHANGE]) == now.replace("3", "2")
    assert as_it_was(now, "b.py", [CHANGE]) == now
    assert as_it_was(now, "a.py", []) == now
    assert as_it_was("other = 1\n", "a.py", [CHANGE]) == "other = 1\n"


def test_only_the_last_change_says_whether_lines_are_deleted() -> None:
    deletion = as_block("a.py", "x\ny\n", "y\n")
    assert deletes([CHANGE, deletion])
    assert not deletes([deletion, CHANGE])
    assert not deletes([])
    assert not deletes([Snippet("a.diff", "--- a\n+++ b\n")])
