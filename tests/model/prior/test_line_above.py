import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.prior.line_above import LineAbove
from lacuna_model.tokenizer import Tokenizer

BEFORE = "import os\nimport sys\n"


@pytest.mark.parametrize(
    ("before", "written", "rest"),
    [
        (BEFORE, "", "import sys"),
        (BEFORE, "import", " sys"),
        (BEFORE, "import re", None),
        (BEFORE, "import sys", None),
        (BEFORE + "im", "", "port sys"),
        (BEFORE + "\n", "import", " sys"),
        (BEFORE, "import re\nimport", " re"),
        (BEFORE + "    ", "", None),
        ("", "import", None),
        ("\n  \n", "", None),
    ],
)
def test_a_line_goes_on_to_be_the_one_above_with_one_token(
    tokenizer: Tokenizer, before: str, written: str, rest: str | None
) -> None:
    token = LineAbove(tokenizer, before, "\n").copied(tokenizer.encode(written))
    assert token == (None if rest is None else tokenizer.encode(rest)[0])


def test_of_a_line_that_goes_on_behind_the_gap_nothing_is_told(tokenizer: Tokenizer) -> None:
    told = LineAbove(tokenizer, BEFORE, " as system\n")
    assert told.copied(tokenizer.encode("import")) is None
    assert not told.repeats(tokenizer.encode("import sys"))


@pytest.mark.parametrize(
    ("before", "fill", "repeats"),
    [
        (BEFORE, "import sys", True),
        (BEFORE, "import os", False),
        (BEFORE, "    import sys", False),
        (BEFORE, "import re\n\nimport re\n", True),
        (BEFORE + "import", " sys", True),
        (BEFORE, "", False),
        ("", "\n\n", False),
    ],
)
def test_a_fill_repeats_a_line_where_two_in_a_row_say_the_same(
    tokenizer: Tokenizer, before: str, fill: str, repeats: bool
) -> None:
    assert LineAbove(tokenizer, before, "\n").repeats(tokenizer.encode(fill)) == repeats


@given(above=st.text(alphabet="ab =(", min_size=1).filter(str.strip))
def test_a_copy_is_told_token_by_token_up_to_its_last(tokenizer: Tokenizer, above: str) -> None:
    told, written = LineAbove(tokenizer, f"{above}\n", "\n"), list[int]()
    while (token := told.copied(written)) is not None:
        written.append(token)
    assert tokenizer.decode(written) == above
    assert told.repeats(written)
