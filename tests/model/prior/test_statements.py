import pytest
import torch
from torch import Tensor

from lacuna_model.prior.statements import NAME_NATS, NATS, Statements, needed
from lacuna_model.tokenizer import Tokenizer

BEFORE = "def area(radius):\n    name = 1"
HEAD, LEAVE, NAME = " for", " return", " total"


def weighed(tokenizer: Tokenizer, behind: str, written: str, *, before: str = BEFORE, assigned: bool = True) -> Tensor:
    """What is added to the logits of the next token."""
    row = torch.zeros(tokenizer.vocab_size)
    Statements(tokenizer, before, behind, assigned=assigned).weigh(row, tokenizer.encode(written))
    return row


def of(tokenizer: Tokenizer, row: Tensor, text: str) -> float:
    (token,) = tokenizer.encode(text)
    return pytest.approx(float(row[token]))  # type: ignore[return-value]  # it compares with floats


@pytest.mark.parametrize(
    ("behind", "relation"),
    [
        ("\n        print(name)\n", "deeper"),
        ("\n\n    print(name)\n        x = 1\n", "same"),
        ("\nprint(name)\n", "less"),
        ("\n  \n", "none"),
    ],
)
def test_the_line_behind_tells_heads_of_blocks_from_what_leaves_them(
    tokenizer: Tokenizer, behind: str, relation: str
) -> None:
    row = weighed(tokenizer, behind, "\n   ")
    assert (of(tokenizer, row, HEAD), of(tokenizer, row, LEAVE)) == NATS[relation]
    assert (of(tokenizer, row, "for"), of(tokenizer, row, NAME)) == (0.0, 0.0)


def test_a_gap_behind_its_indentation_begins_a_line_too(tokenizer: Tokenizer) -> None:
    row = weighed(tokenizer, "\n        print(name)\n", "", before=f"{BEFORE}\n   ")
    assert of(tokenizer, row, HEAD) == NATS["deeper"][0]


@pytest.mark.parametrize(
    ("behind", "written"),
    [
        (" + 1\n    return total\n", "\n   "),
        ("\n    return x\n", "\n    x"),
        ("\n        for x in f(total)\n    ]\n", "\n   "),
    ],
)
def test_nothing_is_said_within_a_statement(tokenizer: Tokenizer, behind: str, written: str) -> None:
    assert not weighed(tokenizer, behind, written).any()


def test_a_name_that_is_used_behind_is_given_its_value(tokenizer: Tokenizer) -> None:
    behind = "\n    return total\n"
    assert of(tokenizer, weighed(tokenizer, behind, "\n   "), NAME) == NAME_NATS
    assert of(tokenizer, weighed(tokenizer, behind, "\n    for"), NAME) == NAME_NATS
    assert of(tokenizer, weighed(tokenizer, behind, "\n    tota"), "l") == NAME_NATS
    assert not weighed(tokenizer, behind, "\n    total = 1").any()
    assert of(tokenizer, weighed(tokenizer, behind, "\n    total = 1\n   "), NAME) == 0.0
    assert of(tokenizer, weighed(tokenizer, behind, "\n   ", assigned=False), NAME) == 0.0


def test_no_name_is_given_a_value_where_deeper_lines_follow(tokenizer: Tokenizer) -> None:
    behind = "\n        print(total)\n"
    assert of(tokenizer, weighed(tokenizer, behind, "\n   "), NAME) == 0.0
    assert of(tokenizer, weighed(tokenizer, behind, "\n    for"), NAME) == NAME_NATS


@pytest.mark.parametrize(
    ("behind", "names"),
    [
        ("    return x + y[0].z\n", ["y"]),
        ("    for a, (b, c) in rows:\n        x += a + b\n", ["rows"]),
        ("    z = 1\n    return z\n", []),
        ("    return call(x, key=1) + len(x) + Name\n", []),
        ("    return [v for v in x]\n\n\ndef later():\n    return other\n", []),
        ('    """Some words."""\n    # and more\n    print("quoted", y)\n', ["y"]),
        ("    import os\n    with os as file:\n        return file == last\n", ["last"]),
    ],
)
def test_names_that_need_a_value(behind: str, names: list[str]) -> None:
    assert needed("def area(x):\n", behind) == names
