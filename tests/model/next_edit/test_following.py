"""What follows a change, as text before, text after, and text with all that is offered."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.languages.python import PYTHON
from lacuna_model.next_edit.changes import RecentChange, TokenizedText
from lacuna_model.next_edit.following import applied, candidates, chosen
from lacuna_model.text.lines import unmatched

LEDGER = (Path(__file__).parents[2] / "data/syntax/ledger.py").read_text()


def change(old: str, new: str, row: int = 0) -> RecentChange:
    made = RecentChange.at(old, new, row, PYTHON)
    assert made is not None
    return made


def followed(old: str, new: str, row: int = 0) -> str:
    made = change(old, new, row)
    return applied(new, chosen(candidates(made, made.new)))


FILLER = "".join(f"def other_{n}(a{n}, b{n}):\n    return a{n} * b{n} + {n}\n\n\n" for n in range(8))


@pytest.mark.parametrize(
    ("first", "becomes", "rest", "then"),
    [
        # An import that gets another name is used under that name.
        ("import brotli\n", "import brotlicffi\n", "body = brotli.compress(text)\n",
         "body = brotlicffi.compress(text)\n"),
        # A misspelt name is misspelt elsewhere, too.
        ("    keepopen = step(w)\n", "    keep_open = step(w)\n", "    if not keepopen:\n", "    if not keep_open:\n"),
        # The words of a message.
        ('raises("Invalid value given")\n', 'raises("Invalid input given")\n', 'check(1, "Invalid value given")\n',
         'check(1, "Invalid input given")\n'),
        # Several lines, at another depth.
        ("for i in range(bench.count):\n    run(i)\n", "while bench.loop():\n    run(i)\n",
         "    for i in range(bench.count):\n        walk(i)\n", "    while bench.loop():\n        walk(i)\n"),
        # An argument more.
        ("send(reader, writer, on_release=done)\n", "send(reader, writer, backend, on_release=done)\n",
         "keep(reader, writer, on_release=done)\n", "keep(reader, writer, backend, on_release=done)\n"),
        # Two parts of a comparison change their places, whatever they are.
        ('assert "" != person.name\n', 'assert person.name != ""\n', 'assert "" != company.address\n',
         'assert company.address != ""\n'),
    ],
)  # fmt: skip
def test_the_change_is_made_at_the_place_like_it_alone(first: str, becomes: str, rest: str, then: str) -> None:
    assert (
        followed(first + FILLER + rest + FILLER, becomes + FILLER + rest + FILLER) == becomes + FILLER + then + FILLER
    )


def test_line_endings_stay_those_of_the_file() -> None:
    old = ("f(a)  # slow path\n" + FILLER + "f(b)  # slow path\n").replace("\n", "\r\n")
    new = old.replace("# slow path", "# fast\r\n# and rare", 1)
    assert "\n" not in followed(old, new).replace("\r\n", "")


def test_a_single_letter_is_not_renamed_in_other_functions() -> None:
    old = "def f(w):\n    return w + 1\n\n\n" + FILLER + "def g(w):\n    return w * 2\n"
    new = old.replace("def f(w)", "def f(x)", 1)
    assert "def g(w)" in followed(old, new)


def test_a_change_of_blanks_alone_is_followed_nowhere() -> None:
    old = "if a:\n  b()\n" + FILLER
    assert followed(old, old.replace("  b()", "    b()", 1), 1) == old.replace("  b()", "    b()", 1)


TOKENS = [match.span() for match in re.finditer(r"\w+|[^\w\s]|\s+", LEDGER)]


@settings(max_examples=60, deadline=None)
@given(
    token=st.sampled_from(TOKENS),
    text=st.sampled_from(["", "x", "foo(1)", "'s'", "==", "(", ", 1", "await ", "total", "\n\n    pass\n"]),
    insert=st.booleans(),
)
def test_places_lie_outside_the_change_and_keep_the_brackets(token: tuple[int, int], text: str, insert: bool) -> None:
    start, end = token
    changed = LEDGER[:start] + text + LEDGER[start if insert else end :]
    if changed == LEDGER:
        return
    made = change(LEDGER, changed, LEDGER.count("\n", 0, start))
    picked = chosen(candidates(made, made.new), 0.0)
    for one in picked:
        assert changed[one.place.start : one.place.end] != one.place.text
        assert one.place.last <= made.new_span[0] or one.place.first >= made.new_span[1]
    assert all(one.place.last <= other.place.first for one, other in pairwise(picked))
    open_before, open_after = unmatched(made.new.texts), unmatched(TokenizedText(applied(changed, picked)).texts)
    assert sorted(open_before) == sorted(open_after)


def test_the_value_of_a_new_variable_becomes_its_name_in_the_same_block() -> None:
    body = "def show(request):\n    {}print(request.params.id)\n    return posts[request.params.id]\n\n\n"
    old = body.format("") + FILLER + body.format("")
    new = old.replace("    print", "    id_of_post = request.params.id\n    print", 1)
    made = followed(old, new, 1)
    assert made.startswith(
        "def show(request):\n    id_of_post = request.params.id\n    print(id_of_post)\n    return posts[id_of_post]\n"
    )
    assert made.count("print(id_of_post)") == 1
