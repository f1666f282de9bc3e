import pytest
from tests.server.refactor.bench import Bench

from lacuna_server.refactor.rewriting.refactoring import by_structure

ADD = ("get($$$ARGS)", "get($$$ARGS, timeout=<<fill>>)")
RENAME = ("get($$$ARGS)", "send($$$ARGS, timeout=<<fill>>)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("get(a, b)\n", "get(a, b, timeout=x)\n"),
        ("get()\n", "get(timeout=x)\n"),
        ("get(a,)\n", "get(a, timeout=x,)\n"),
        ("get(get(a).b)\n", "get(get(a, timeout=x).b, timeout=x)\n"),
        ("é = [get('👍'), get(2)]\n", "é = [get('👍', timeout=x), get(2, timeout=x)]\n"),
        ("get(\n    a,  # one\n    b,  # two\n)\n", "get(\n    a,  # one\n    b, timeout=x,  # two\n)\n"),
        ("get(\n    a  # one\n)\n", "get(\n    a, timeout=x  # one\n)\n"),
        ("get(\r\n\ta,\r\n)\r\n", "get(\r\n\ta, timeout=x,\r\n)\r\n"),
    ],
)
def test_an_addition_keeps_the_layout_of_the_place(bench: Bench, before: str, after: str) -> None:
    assert bench.apply(by_structure(*ADD), before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("get(a, b)\n", "send(a, b, timeout=x)\n"),
        ("get()\n", "send(timeout=x)\n"),
        ("get(a,)\n", "send(a, timeout=x)\n"),
        ("get(get(a))\n", "send(send(a, timeout=x), timeout=x)\n"),
        ("get(\n    a,\n    b,  # two\n)\n", "send(a,\n    b,  # two\n    timeout=x)\n"),
        ("get(  # none\n)\n", "send(# none\ntimeout=x)\n"),
    ],
)
def test_separators_and_comments_stay_where_they_belong(bench: Bench, before: str, after: str) -> None:
    assert bench.apply(by_structure(*RENAME), before) == after


@pytest.mark.parametrize(
    ("pattern", "template", "before", "after"),
    [
        ("$A and $A.$B", "$A and ready and $A.$B", "y = u and u.name\n", "y = u and ready and u.name\n"),
        ("m($KEYS).set($KEY)", "m($KEYS).set($KEYS, $KEY, <<fill>>)", "m(k).set(v)\n", "m(k).set(k, v, x)\n"),
        ("foo($A, $A)", "foo($A, x, $A)", "foo(a, a)\n", "foo(a, x, a)\n"),
        ("foo($A, $B, $A)", "foo($A, $B, x, $A)", "foo(a,  b, a)\n", "foo(a,  b, x, a)\n"),
    ],
)
def test_what_is_inserted_comes_behind_the_right_metavariable(
    bench: Bench, pattern: str, template: str, before: str, after: str
) -> None:
    assert bench.apply(by_structure(pattern, template), before) == after


NESTED = "if $C:\n    with lock:\n        $$$BODY\n\n    done()"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "if a:\n  b\n  if c:\n    d\n",
            "if a:\n  with lock:\n    b\n    if c:\n      with lock:\n        d\n\n      done()\n\n  done()\n",
        ),
        ("def f():\n\tif a:\n\t\tb\n\t\tc\n", "def f():\n\tif a:\n\t\twith lock:\n\t\t\tb\n\t\t\tc\n\n\t\tdone()\n"),
        ("if a:\n  b\n", "if a:\n  with lock:\n    b\n\n  done()\n"),
        ("if a:\r\n    b\r\n    c\r\n", "if a:\r\n    with lock:\r\n        b\r\n        c\r\n\r\n    done()\r\n"),
        ('if a:\n    b = """\n  text\n"""\n', 'if a:\n    with lock:\n        b = """\n  text\n"""\n\n    done()\n'),
        ("if a: b\n", "if a:\n    with lock:\n        b\n\n    done()\n"),
    ],
    ids=["nested", "tabs", "two-spaces", "crlf", "string", "one-line"],
)
def test_indentation_follows_the_place(bench: Bench, before: str, after: str) -> None:
    assert bench.apply(by_structure("if $C: $$$BODY", NESTED), before) == after


LINES = "open(\n  a,\n  b,\n  c,\n);\n"


@pytest.mark.parametrize(
    ("name", "pattern", "template", "before", "after"),
    [
        ("a.js", "open($A, $B)", "start($B)", "open(\n  a,\n  b,\n);\n", "start(b);\n"),
        ("a.js", "open($A, $B)", "open($A)", "open(\n  a,\n  b,\n);\n", "open(a);\n"),
        ("a.js", "open($A, $B, $C)", "open($A, $C)", LINES, "open(a, c);\n"),
        ("a.js", "open($A, $$$B)", "start($$$B)", LINES, "start(b,\n  c);\n"),
        ("a.py", "[$A, $B]", "[$B]", "x = [\n    1,\n    2,\n]\n", "x = [2]\n"),
        ("a.go", "f($A, $B)", "f($B)", "package a\n\nvar x = f(\n\ta,\n\tb,\n)\n", "package a\n\nvar x = f(b)\n"),
        ("a.js", "open($A, $B)", "open(z, $A, $B)", "open(\n  a,\n  b,\n);\n", "open(z, a,\n  b,\n);\n"),
    ],
)
def test_a_list_with_fewer_elements_keeps_no_comma_or_line_break_of_those_that_are_gone(
    bench: Bench, name: str, pattern: str, template: str, before: str, after: str
) -> None:
    assert bench.apply(by_structure(pattern, template), before, name) == after
