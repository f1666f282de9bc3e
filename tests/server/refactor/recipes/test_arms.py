import re

import pytest
from tests.server.refactor.bench import Bench, Scripted

from lacuna_server.refactor.recipes import by_recipe

ADD = by_recipe("arms", {})
CASES = [
    (
        "a.py",
        "from enum import Enum\n\n\nclass Color(Enum):\n    RED = 1\n    GREEN = 2\n    BLUE = 3\n\n\ndef f(c):\n"
        "    match c:\n        case Color.RED | Color.BLUE:\n            return 1\n",
        "\n        case Color.GREEN:\n            x",
    ),
    (
        "a.rs",
        (
            "enum Color { Red, Green, Blue(u8) }\n\nfn f(c: Color) -> u8 {\n    match c {\n"
            "        Color::Blue(n) => n\n    }\n}\n"
        ),
        ",\n        Color::Red => x,\n        Color::Green => x,",
    ),
    (
        "a.ts",
        (
            "enum Color { Red, Green = 2 }\n\nfunction f(c: Color) {\n  switch (c) {\n    case Color.Red:\n"
            "      break;\n  }\n}\n"
        ),
        "\n    case Color.Green:\n      x\n      break;",
    ),
    (
        "a.c",
        (
            "enum color { RED, GREEN };\n\nint f(enum color c) {\n    switch (c) {\n    case RED:\n"
            "        return 1;\n    }\n}\n"
        ),
        "\n    case GREEN:\n        x\n        break;",
    ),
]


@pytest.mark.parametrize(("name", "before", "arms"), CASES, ids=[case[0] for case in CASES])
def test_missing_arms_are_added(bench: Bench, name: str, before: str, arms: str) -> None:
    answer = Scripted(lambda region: "x" if name.endswith(".py") or name.endswith(".rs") else "x;")
    made = bench.apply(ADD, before, name, answer)
    arms = arms if name.endswith((".py", ".rs")) else arms.replace("x\n", "x;\n")
    assert made.replace(arms, "", 1) == before
    assert bench.apply(ADD, made, name, answer) == made


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
    before = next(text for case, text, _ in CASES if case == name)
    end = {"a.py": "return 1\n", "a.rs": "=> n", "a.ts": "break;\n", "a.c": "return 1;\n"}[name]
    before = before.replace(end, end + otherwise)
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
    before = next(text for case, text, _ in CASES if case == name).replace(f"{label}\n{body}", f"{label} {last}\n")
    made = bench.apply(ADD, before, name, Scripted(lambda region: "x;"))
    assert bool(re.search(rf"{re.escape(last)}\n +break;\n", made)) == ended
    assert "\n    case " in made


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "a.rs",
            "enum E { A, B }\nfn f(e: E) {\n    match e {\n        E::A => 1 // one\n        // more\n    };\n}\n",
            "        E::A => 1, // one\n        E::B => x,\n        // more\n",
        ),
        (
            "a.c",
            "enum E { A, B };\nvoid f(enum E e) {\n    switch (e) {\n    case A:\n        break; // one\n    }\n}\n",
            "        break; // one\n    case B:\n        x\n        break;\n    }\n",
        ),
    ],
)
def test_a_comment_after_the_last_arm_stays_with_it(bench: Bench, name: str, before: str, after: str) -> None:
    made = bench.apply(ADD, before, name, Scripted(lambda hole: "x;" if name == "a.c" else "x"))
    assert after in made.replace("x;", "x")
