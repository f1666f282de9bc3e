import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.stopping import StopRule

INI = "[server]\nhost = localhost\n"


@pytest.mark.parametrize(
    ("before", "after", "text", "expected"),
    [
        (INI + "port = ", "\n", "8080\n\nThis configuration", "8080"),
        (INI + "port = ", "\n", "8080", None),
        (INI, "", "port = 1\nuser = me\n\n[client]\n", "port = 1\nuser = me\n"),
        (INI, "", "port = 1\nhost = localhost\nport = 1\n", "port = 1\n"),
        ("db.host=x\n", "", "".join(f"{key}=1\n" for key in "abcdefghi"), "".join(f"{key}=1\n" for key in "abcdefgh")),
        ("# Title\n\n", "\n", "Some words.\n```\ncode\n", "Some words."),
        ("# Title\n\n", "\n", "~~~", ""),
        ("", "", "one\ntwo", None),
    ],
    ids=["line", "unfinished", "paragraph", "line-above", "endless-keys", "fence", "only-a-fence", "goes-on"],
)  # fmt: skip
def test_without_a_grammar_a_fill_ends_with_its_line_or_paragraph(
    before: str, after: str, text: str, expected: str | None
) -> None:
    assert StopRule.between(before, after, has_grammar=False).end(text, final=False) == expected


@given(before=st.text("ab=`\n "), text=st.text("ab=`\n "))
def test_no_fence_and_no_line_from_above_is_written(before: str, text: str) -> None:
    fill = StopRule.between(before, "", has_grammar=False).end(text, final=True) or ""
    in_line = bool(before.rpartition("\n")[2].strip())
    above = {line.strip() for line in before.split("\n")[:-1] if line.strip()}
    for line in fill.split("\n")[in_line:]:
        assert not line.lstrip().startswith("```")
        assert line.strip() not in above
    assert not in_line or "\n" not in fill.removesuffix("\n")
