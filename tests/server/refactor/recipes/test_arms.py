import re

import pytest
from tests.server.refactor.bench import Bench, Scripted, marked

from lacuna_server.refactor.recipes import by_recipe

ADD = by_recipe("arms", {})
CASES = {
    "a.py": (
        "from enum import Enum\n\n\nclass Color(Enum):\n    RED = 1\n    GREEN = 2\n    BLUE = 3\n\n\ndef f(c):\n"
        "    match c:\n        case Color.RED | Color.BLUE:\n            return 1"
        "«\n        case Color.GREEN:\n            x»\n"
    ),
    "a.rs": (
        "enum Color { Red, Green, Blue }\n\nfn f(c: Color) -> u8 {\n    match c {\n"
        "        Color::Blue => n«,\n        Color::Red => x,\n        Color::Green => x,»\n    }\n}\n"
    ),
    "a.ts": (
        "enum Color { Red, Green = 2 }\n\nfunction f(c: Color) {\n  switch (c) {\n    case Color.Red:\n      break;"
        "«\n    case Color.Green:\n      x;\n      break;»\n  }\n}\n"
    ),
    "a.c": (
        "enum color { RED, GREEN };\n\nint f(enum color c) {\n    switch (c) {\n    case RED:\n        return 1;"
        "«\n    case GREEN:\n        x;\n        break;»\n    }\n}\n"
    ),
}
BEFORE = {name: marked(text)[0] for name, text in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_missing_arms_are_added(bench: Bench, name: str) -> None:
    before, after = marked(CASES[name])
    answer = Scripted(lambda region: "x" if name in ("a.py", "a.rs") else "x;")
    assert bench.apply(ADD, before, name, answer) == after
    assert bench.apply(ADD, after, name, answer) == after


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [
        ("a.py", "        case _:\n            return 2\n"),
        ("a.py", "        case other:\n            return 2\n"),
        ("a.rs", ",\n        _ => 1\n"),
        ("a.ts", "    default:\n      break;\n"),
        ("a.c", "    default:\n        break;\n"),
    ],
)
def test_a_switch_with_a_default_arm_is_complete(bench: Bench, name: str, otherwise: str) -> None:
    end = {"a.py": "return 1\n", "a.rs": "=> n", "a.ts": "break;\n", "a.c": "return 1;\n"}[name]
    before = BEFORE[name].replace(end, end + otherwise)
    assert bench.apply(ADD, before, name) == before


@pytest.mark.parametrize(
    ("name", "last", "ended"),
    [
        ("a.ts", "b();", True),
        ("a.ts", "", True),
        ("a.ts", "{ b(); break; }", False),
        ("a.ts", "throw b; // c", False),
        ("a.c", "b(); // c", True),
        ("a.c", "goto b;", False),
    ],
)
def test_the_last_arm_does_not_go_on_with_the_first_new_one(bench: Bench, name: str, last: str, ended: bool) -> None:
    label = "case Color.Red:" if name == "a.ts" else "case RED:"
    body = "      break;\n" if name == "a.ts" else "        return 1;\n"
    before = BEFORE[name].replace(f"{label}\n{body}", f"{label} {last}\n")
    made = bench.apply(ADD, before, name, Scripted(lambda region: "x;"))
    assert bool(re.search(rf"{re.escape(last)}\n +break;\n", made)) == ended
    assert "\n    case " in made


@pytest.mark.parametrize("name", ["Shape", "Self"])
def test_members_with_data_get_arms_that_take_it(bench: Bench, name: str) -> None:
    before, after = marked(
        "enum Shape { Empty, Circle(f64), Box { width: f64, height: f64 }, Line(f64, f64), Nothing {} }\n\n"
        f"impl Shape {{\n    fn area(&self) -> f64 {{\n        match self {{\n            {name}::Circle(r) => r * r,\n"
        f"            {name}::Line(..) | {name}::Nothing {{ .. }} => 0.0,"
        f"«\n            {name}::Empty => x,\n            {name}::Box {{ width, height }} => x,»"
        "\n        }\n    }\n}\n"
    )
    assert bench.apply(ADD, before, "a.rs") == after
    answer = Scripted(lambda region: "a, b" if region.max_tokens == 8 else "x")
    text = before.replace(f"{name}::Circle(r) => r * r,", f"{name}::Empty => 0.0,")
    assert f"\n            {name}::Circle(a, b) => x,\n" in bench.apply(ADD, text, "a.rs", answer)


@pytest.mark.parametrize("label", ["Shape::Circle(3)", "Shape::Circle(Some(r))", "Other::Circle(r)", "Self::Circle(r)"])
def test_an_arm_that_takes_a_part_of_a_member_or_another_enums_adds_nothing(bench: Bench, label: str) -> None:
    enum = "enum Shape { Circle(f64), Empty }\n\n"
    text = enum + f"fn f(s: Shape) {{\n    match s {{\n        {label} => 1,\n    }};\n}}\n"
    assert bench.apply(ADD, text, "a.rs") == text


RUST = "        E::A => 1«,» // one\n«        E::B => x,\n»        // two\n"
C = "    case A:\n        break; // one\n«    case B:\n        x\n        break;\n»"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.rs", f"enum E {{ A, B }}\nfn f(e: E) {{\n    match e {{\n{RUST}    }};\n}}\n"),
        ("a.c", f"enum E {{ A, B }};\nvoid f(enum E e) {{\n    switch (e) {{\n{C}    }}\n}}\n"),
    ],
)
def test_a_comment_after_the_last_arm_stays_with_it(bench: Bench, name: str, text: str) -> None:
    before, after = marked(text)
    made = bench.apply(ADD, before, name, Scripted(lambda hole: "x;" if name == "a.c" else "x"))
    assert made.replace("x;", "x") == after
