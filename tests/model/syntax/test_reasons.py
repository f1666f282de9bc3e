"""What the user is told where no valid fill was found."""

import pytest
from msgspec.structs import replace
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, fill, require

from lacuna_model.core.constraint import FillSoFar
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.stand_ins import no_fill

BROKEN = "import json\n\ndef a(x:\n    return x\n\n\ndef b(y):\n    return |\n\n\nclass C:\n    z = 1\n"
WHOLE, SHORT, LONG = FillSoFar((1, 2), 9), FillSoFar((1, 2, 3), 3), FillSoFar(96 * (1,), 96)


def gap_of(text: str, regex: str = "", schema: str = "") -> tuple[bytes, list[Region]]:
    before, after = text.encode().split(b"|")
    return before + after, [Region(len(before), len(before), max_tokens=3, regex=regex, json_schema=schema)]


@pytest.mark.parametrize(
    ("text", "name", "seen", "said"),
    [
        ("a = |\n", "python", WHOLE, "what the model wrote would break the syntax here"),
        ("def f():\n    |\n", "python", WHOLE, "what the model wrote would break the syntax here"),
        ("a = |\n", "python", SHORT,
         "what the model began does not end within 3 tokens (a larger max_tokens may help)"),
        ("a = |\n", "python", LONG, "within 96 tokens (the first words of the fill, written by you, may help)"),
        (BROKEN, "python", SHORT, "the syntax is broken already near line 3, so that little can be checked"),
        ("a = |\n<<<<<<< a\nb = 1\n=======\nb = 2\n>>>>>>> b\n", "python", WHOLE, "broken already near line 2,"),
        ("f(|);\n\nlet = = 3;\n", "javascript", WHOLE, "broken already near line 3,"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_wrong(text: str, name: str, seen: FillSoFar, said: str) -> None:
    data, (gap,) = gap_of(text)
    message = no_fill(data, [replace(gap, max_tokens=seen.most)], require(name), [seen], late=False)
    assert message.startswith("no valid fill was found: ")
    assert said in message
    assert message.endswith("; the text stays as it was")


def test_rules_and_a_deadline_are_named() -> None:
    text, regions = gap_of("a = |\n", regex="[0-9]+", schema="{}")
    assert "keeps regex and json_schema;" in no_fill(text, regions, None, [WHOLE], late=False)
    assert "the time limit came before" in no_fill(text, regions, None, [WHOLE], late=True)


def test_a_line_is_counted_in_the_file_whatever_the_gaps_hold() -> None:
    text = b"def a():\n    return 1\n\ndef b():\n    c()\n    d()\n    e()\n\nx = (\n\ndef f():\n    pass\n"
    regions = [Region(text.index(b"1"), text.index(b"1") + 1), Region(text.index(b"    c()"), text.index(b"\nx = ("))]
    assert "near line 9," in no_fill(text, regions, require("python"), [WHOLE, WHOLE], late=False)


def test_the_constraint_gives_the_reason(tokens: SmallTokens) -> None:
    text = b"a = \n"
    constraint = SyntaxConstraint(text, [Region(4, 4)], require("python"), tokens)
    verdict = fill(constraint, certain([tokens.encode("]") * 9], tokens.eog_id), [12], tokens.eog_id)
    assert verdict.message == no_fill(text, [Region(4, 4)], require("python"), [WHOLE], late=False)
