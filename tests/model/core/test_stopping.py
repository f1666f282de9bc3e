from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lacuna_model.core.stopping import LineLimit, StopRule

BODY = "def f(x):\n"
INI = "[server]\nhost = localhost\n"


LEAVING = {
    "repeats-next-line": (BODY, "    return y\n", "    y = x\n    return y\n", "    y = x\n"),
    "blank-line-first": (BODY, "\n    return y\n", "    y = x\n    return y\n", "    y = x"),
    "longer-line": (BODY, "    return y\n", "    y = x\n    return y + 1\n", None),
    "unfinished-line": (BODY, "    return y\n", "    y = x\n    return y", None),
    "rest-of-line": (BODY + "    y = ", "\n    return y\n", "x\n    return y\n", "x"),
    "nothing-to-add": (BODY + "    ", "\n    return y\n", "return y\n", ""),
    "mid-line": (BODY + "    if x", ":\n        return y\n", " > 3:\n", " > 3"),
    "last-bracket": (BODY + "    g(", ")\n", "h(x))\n", "h(x)"),
    "goes-past": ('print(f"a {', '}!")\n', 'name}!")  # a', "name"),
    "may-go-on": ('print(f"a {', '}!")\n', 'name}!")', None),
    "own-brackets-in-line": ("foo(() => {", "});\n", " a({b: 1}); c", None),
    "short-rest": ("x = foo(", ")\n", "bar) + foo(1", None),
    "own-bracket": ("foo(", ")\n", "bar()\n", None),
    "bracket-of-suffix": ("foo(", "))\n", "bar(x))\n", "bar(x"),
    "open-line": ("foo({", "}\n", "a: 1}\n", "a: 1"),
    "brace": ("if (a", ") {\n", " && b) {\n", " && b"),
    "leaves-function": (BODY, "", "    return x\n\n\ndef g():", "    return x\n"),
    "stays": (BODY, "", "    return x\n\n    pass", None),
    "closing-bracket": (BODY, "", "    return [\n)", None),
    "leaves-block": (BODY, "    return y\n", "    y = x\nprint(f(1))", "    y = x\n"),
    "top-level": ("x = 1\n", "", "y = 2\nz = 3\n", None),
    "top-level-repeats": ("x = 1\n", "z = 3\n", "y = 2\nz = 3\n", "y = 2\n"),
    "next-function": (BODY + "    y = x\n", "\n\ndef g():\n    pass\n", "    return y\n\n\ndef g():\n", "    return y"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "text", "expected"), LEAVING.values(), ids=LEAVING)
def test_a_fill_repeats_no_suffix_and_leaves_no_block(before: str, after: str, text: str, expected: str | None) -> None:
    assert StopRule(before, after).end(text, final=False) == expected


TO_A_GAP = {
    "in-line": ("x = f(", ", options, ", "a, options, b)\n", "a"),
    "unfinished-line": ("x = f(", ", options, ", "a, options", None),
    "comma": ("x = f(", ", ", "a, b)\n", "a"),
    "next-line": (BODY, "    value = ", "    z = 1\n    value = 2\n", "    z = 1\n"),
    "whole-line-between": (BODY, "    y = 1\n    z = ", "    x = 1\n    y = 1\n", "    x = 1\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "part", "text", "expected"), TO_A_GAP.values(), ids=TO_A_GAP)
def test_a_fill_ends_where_it_repeats_text_up_to_a_gap(before: str, part: str, text: str, expected: str | None) -> None:
    assert StopRule(before, part + ")\n", len(part)).end(text, final=False) == expected


METHOD = "class A:\n    def f(self):\n        x = 1\n"
GO = "func f() error {\n\tx := 1\n"
TS = "class A {\n  f() {\n    const x = 1;\n"


BESIDE = {
    "next-method": (METHOD + "        ", "\n\n\ndef g():\n    pass\n", "return x\n\n    def h(self):\n", "return x"),
    "annotation":
        (METHOD + "        ", "\n\n    def g(self):\n", "return x\n\n    @property\n    def h(self):\n", "return x"),
    "next-function": (METHOD + "        ", "\n\nx = 1\n", "return x\n\ndef h():\n", "return x"),
    "outer-function": ("def f():\n    def g():\n        ", "\n\nf()\n", "return 1\n    return g\n", None),
    "class-body": ("class A:\n    x: int\n    ", "\n", "y: int\n\n    def f(self):\n", None),
    "between-definitions": (METHOD + "\n", "\n\nx = 1\n", "def g():\n    return 1\n", None),
    "next-method-of-a-class":
        (METHOD + "\n", "\n\nx\n", "    def g(self):\n        x()\n\ndef h():\n", "    def g(self):\n        x()"),
    "yaml": ("a:\n  type: x\n  b:\n    c: 1\n    ", "\n", "d: 2\n  type: y\n  module: z\n", None),
    "callback": ("func f() {\n\tdefer func() {\n\t\t", "\n", "x()\n\t}()\n\ttype(x)\n", None),
    "closing-brace": (GO + "\t", "\n\nfunc g() {\n}\n", "return nil\n}\n\nfunc h() {\n", "return nil\n}"),
    "closed-below": (GO + "\t", "\n}\n\nfunc g() {\n}\n", "return nil\n}\n\nfunc h() {\n", "return nil"),
    "else": (GO + "\tif x {\n\t\t", "\n\t}\n\treturn nil\n}\n", "y()\n\t} else {\n\t\tz()\n", None),
    "method-closed-below": (TS + "    ", "\n  }\n}\n", "return x;\n  }\n\n  g() {\n", "return x;"),
    "method": (TS + "    ", "\n", "return x;\n  }\n\n  g() {\n", "return x;\n  }"),
    "own-block": (TS + "    ", "\n", "if (x) {\n    }\n", None),
    "top-level": ("x = 1\n\n\n", "\n\ndef g():\n", "def h():\n    return 1\n\ny = 2\n", None),
    "end-word": ("def f\n  ", "\n", "x = 1\nend\ndef g\n", "x = 1\nend"),
    "one-method":
        ("class A:\n    def f(self):", "", "\n        return 1\n\n    def g(self):\n", "\n        return 1\n"),
    "brace-below": ("class A", "\n", "b : B\n{\n    int x;\n}\n\nclass C\n", "b : B\n{\n    int x;\n}"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "text", "expected"), BESIDE.values(), ids=BESIDE)
def test_a_fill_begins_no_definition_beside_its_own(before: str, after: str, text: str, expected: str | None) -> None:
    assert StopRule(before, after).end(text, final=False) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n    y = 2\n    z", ["x = 1\n    y = 2"]),
        ("x = 1\n    y = f(\n        a,\n        b", ["x = 1", "x = 1\n    y = f(\n        a,"]),
        ("x = 1", []),
        ("", []),
        ("return the whole wor", ["return the whole"]),
        ("whole", []),
    ],
)
def test_a_fill_that_runs_into_its_budget_has_whole_statements(text: str, expected: list[str]) -> None:
    assert list(StopRule(BODY + "    ", "\n    return y\n").whole(text)) == expected


@pytest.mark.parametrize(
    ("before", "after", "text", "expected"),
    [
        ('print(f"Hello {', '}")\n', 'name}!")  # Output', "name"),
        ('print(f"Hello {', '}")\n', "name}!", None),
        ('print(f"Hello {', '}")\n', "name} and {other", None),
        ('echo "Hello ${', '}"\n', 'name}!" | sed', "name"),
        ("f(`${", "}`);\n", "a[`x`]", None),
        ("foo(bar(", "))\n", "x))  # done", "x"),
        ("foo(bar(", "))\n", "x), baz(y", None),
        ("foo(bar(", ")\n", "x))  # done", None),
        ("foo(", ")\n", "x)  # done", None),
    ],
)
def test_whoever_closes_two_brackets_has_left(before: str, after: str, text: str, expected: str | None) -> None:
    assert StopRule(before, after).end(text, final=False) == expected


SED = " | sed 's/Ada/Ada/'"


ROUNDS = {
    "shell": ("cat" + 3 * SED, "cat" + SED),
    "twice": ("cat" + 2 * SED, None),
    "prose": ("2" + 3 * ", the words again", "2, the words again"),
    "numbers": ("[" + 20 * "0, ", None),
    "line": (60 * "-", None),
    "digits": ("1" + 30 * "0", "10"),
    "large-number": ("1" + 29 * "0", None),
    "hexadecimal": ("0x" + 64 * "0", None),
    "quoted-digits": ('"1' + 64 * "0", None),
    "one-word": (3 * "</div></div>", None),
    "lines": ("x\n" + 3 * "    self.step(one)\n", "x\n    self.step(one)"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ROUNDS.values(), ids=ROUNDS)
def test_a_fill_that_goes_round_ends_after_the_first_round(text: str, expected: str | None) -> None:
    assert StopRule("x = ", "\ny\n").end(text, final=False) == expected


STANDING_BELOW = {
    "next": ("    ", "    rows = f(x)\n    rows.sort()\n    return rows\n", "return rows\n", ""),
    "second-line":
        ("    ", "    rows = f(x)\n    rows.sort()\n    return rows\n", "rows = []\n    return rows\n", None),
    "deeper": ("        ", "    rows = f(x)\n    return rows\n", "return rows\n", None),
    "in-line": ("    x = ", "    rows = f(x)\n    return rows\n", "return rows\n", None),
    "bracket": ("    ", "    x = 1\n    }\n", "}\n", None),
    "other-block": ("", "    if y:\n        return rows\n    return rows\n", "        return rows\n", None),
    "same-block": ("", "    if y:\n        z()\n    return rows\n", "    return rows\n", ""),
    "behind-the-block": ("    ", "    rows = 1\nx()\n    return rows\n", "return rows\n", None),
}  # fmt: skip


@pytest.mark.parametrize(("head", "below", "text", "expected"), STANDING_BELOW.values(), ids=STANDING_BELOW)
def test_a_fill_on_a_blank_line_does_not_begin_with_a_line_that_stands_below(
    head: str, below: str, text: str, expected: str | None
) -> None:
    assert StopRule("def f(x):\n    if x:\n" + head, "\n" + below).end(text, final=False) == expected


ALONE = {
    "constant": ("LOG_FILE = ", "\n\ndef log():\n", '"a.log"\nLOG_LEVEL = 1\n', '"a.log"'),
    "no-blank-line": ("LOG_FILE = ", "\ndef log():\n", '"a.log"\nLOG_LEVEL = 1\n', None),
    "last": ("LOG_FILE = ", "\n\n", '"a.log"\nLOG_LEVEL = 1\n', '"a.log"'),
    "last-unfinished": ("LOG_FILE = ", "", '"a.log"', None),
    "last-return": ("def f(a):\n    return ", "", "a\n\nprint(f(1))\n", "a"),
    "last-brackets": ("def f(a):\n    return ", "\n", "(\n    a\n)\n\nprint(f(1))\n", "(\n    a\n)"),
    "last-call": ("load(", "\n", "1)  # c", "1)"),
    "last-arguments": ("load(1,", "", "\n    2)\nload(", "\n    2)"),
    "last-operator": ("total = a +", "", "\n    b\nload(", "\n    b"),
    "last-loop": ("for a in ", "", "b:\n    f(a)\nf(b)\n", None),
    "last-signature": ("def f(", "", "\n    a,\n):\n    b = a\n    return b\n", None),
    "list": ("names = ", "\n\nprint(names)\n", "[\n    1,\n", None),
    "operator": ("let total = ", "\n\nprint(total)\n", "a +\n    b\n", "a +\n    b"),
    "import": ("from ledger import ", "\n\nload()\n", "load, save  # Assuming", "load, save"),
    "quoted": ("LINK = ", "\n\nload()\n", '"a # b" # c', '"a # b"'),
    "comment": ("x = ", "\n\nload()\n", "a  # c", "a"),
    "near": ("x = ", "\nload()\n", "a  # c", None),
    "comments": ("a = 1  # b\nx = ", "\n\nload()\n", "a  # c", None),
    "default": ("def f(a=1", "\n\nf()\n", "):\n    return a\n", None),
    "if": ("if a == ", "\n\nf()\n", "b:\n    f()\n", None),
}  # fmt: skip


@pytest.mark.parametrize(("head", "after", "text", "expected"), ALONE.values(), ids=ALONE)
def test_a_statement_before_blanks_is_all(head: str, after: str, text: str, expected: str | None) -> None:
    assert StopRule("import os\n\n" + head, after).end(text, final=False) == expected


@pytest.mark.parametrize(
    ("before", "after", "text", "expected"),
    [
        ("f(", ")\n", "a) + g(b", "a) + g(b"),
        ("f(g(", ")\n", "a), b", "a), b"),
        ("f(g(", "))\n", "a), b", "a"),
        ("f(", ")\n", "a), (b), c", "a"),
        ("f([", "])\n", "a], [b", "a], [b"),
        ("x[", "]\n", "a](b)", "a"),
        ('s = f"Hello {', '}"\n', "name} and more", "name"),
        ("f(`Hello ${", "}`);\n", "a({x}) name}`;", "a({x}) name"),
        ('echo "Hello ${', '}"\n', "name}!\n", "name"),
    ],
)
def test_a_fill_may_close_what_it_opens_and_what_is_due(before: str, after: str, text: str, expected: str) -> None:
    assert StopRule(before, after).end(text, final=True) == expected


LIMITED = StopRule("x = ", "\n", None, LineLimit(1, keeps_newline=False))


@pytest.mark.parametrize("text", ["f(1)\n", "f(1)\r\n", "f(1)\ny = 2", "f(1)\n\n\n"])
def test_a_fill_ends_with_the_last_line_of_its_limit(text: str) -> None:
    assert LIMITED.end(text, final=False) == "f(1)"
    assert LIMITED.end("f(1)", final=False) is None


TEXTS = st.text(alphabet="ab: \n)", max_size=40)
# Too short to go round, which is counted in characters.
SHORT = st.text(alphabet="ab=: \n)}{", max_size=28)


@settings(deadline=None)  # the machine may be busy
@given(before=SHORT, after=SHORT, text=SHORT, until=st.integers(0, 28), has_grammar=st.booleans(), limit=st.booleans())
@example("def f(x):\n    y = ", "\n    return y\n", "x + 1\n    return y\n", 0, True, False)
@example("a = [\n    1,\n    ", "\n]\n", "x[0]", 0, True, False)
@example("x:\n    y = ", "\n", "x + 1 +\n", 0, False, False)
def test_the_ends_of_a_fill_are_the_same_whatever_its_lines_end_with(
    before: str, after: str, text: str, until: int, has_grammar: bool, limit: bool
) -> None:
    def windows(text: str) -> str:
        return text.replace("\n", "\r\n")

    def ends(convert: Callable[[str], str], *, final: bool) -> list[str]:
        gap_follows = len(convert(after[:until])) if until else None
        lines = LineLimit(1, keeps_newline=not after.startswith("\n")) if limit else None
        rule = StopRule(convert(before), convert(after), gap_follows, lines, has_grammar=has_grammar)
        return [*rule.ends(convert(text), final=final), *rule.whole(convert(text))]

    for final in (True, False):
        assert ends(windows, final=final) == [windows(one) for one in ends(str, final=final)]


@settings(deadline=None)  # the machine may be busy
@given(before=TEXTS, after=TEXTS, text=TEXTS)
def test_an_end_once_found_never_moves(before: str, after: str, text: str) -> None:
    rule = StopRule(before, after)
    grown = [rule.end(text[:size], final=False) for size in range(len(text) + 1)]
    found = [end for end in grown if end is not None]
    assert all(end == found[0] for end in found)
    final = rule.end(text, final=True)
    assert final is not None
    assert len(final) <= len(text) + 1


WITHOUT_A_GRAMMAR = {
    "line": (INI + "port = ", "\n", "8080\n\nThis configuration", "8080"),
    "unfinished": (INI + "port = ", "\n", "8080", None),
    "paragraph": (INI, "", "port = 1\nuser = me\n\n[client]\n", "port = 1\nuser = me\n"),
    "line-above": (INI, "", "port = 1\nhost = localhost\nport = 1\n", "port = 1\n"),
    "endless-keys":
        ("db.host=x\n", "", "".join(f"{key}=1\n" for key in "abcdefghi"), "".join(f"{key}=1\n" for key in "abcdefgh")),
    "fence": ("# Title\n\n", "\n", "Some words.\n```\ncode\n", "Some words."),
    "only-a-fence": ("# Title\n\n", "\n", "~~~", ""),
    "goes-on": ("", "", "one\ntwo", None),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "text", "expected"), WITHOUT_A_GRAMMAR.values(), ids=WITHOUT_A_GRAMMAR)
def test_without_a_grammar_a_fill_ends_with_its_line(before: str, after: str, text: str, expected: str | None) -> None:
    assert StopRule(before, after, has_grammar=False).end(text, final=False) == expected


@pytest.mark.parametrize(
    ("before", "between", "text", "end"),
    [
        ("    return Vector(", ", ", "self.x + other.x, self.y + other.y)", "self.x + other.x"),
        ("    return Vector(", ", ", "f(a, b), c", "f(a, b)"),
        ("    return Vector(", ", ", "first) + (second", "first"),
        ("x = [", ", ", "'a, b', 'c'", "'a, b'"),
        ("for (", "; ", "int i = 0; i < n; i++", "int i = 0"),
        ("first, second = ", ", ", "f(1), 2", "f(1)"),
        ("print('a", ", ", "b, c", "b, c"),
        ("    return Vector(", " + ", "a, b", "a, b"),
    ],
)
def test_a_gap_before_the_next_one_of_its_list_holds_one_value(before: str, between: str, text: str, end: str) -> None:
    rule = StopRule(before, between + ")\n", len(between))
    assert rule.end(text, final=True) == end
