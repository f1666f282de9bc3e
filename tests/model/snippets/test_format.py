import pytest

from lacuna_model.core.params import Diagnostic
from lacuna_model.snippets.format import comment, diagnostics_snippet


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "# x\n"),
        ("a.ts", "// x\n"),
        ("a.lua", "-- x\n"),
        ("a.css", "/* x */\n"),
        ("a.html", "<!-- x -->\n"),
        ("a.json", "# x\n"),
        ("Makefile", "# x\n"),
    ],
)
def test_a_comment_has_the_syntax_of_the_language(path: str, line: str) -> None:
    assert comment("x", path) == line


def test_the_nearest_messages_within_the_limit_are_shown_in_order() -> None:
    reported = [Diagnostic(line, f"message {line}") for line in (40, 2, 9, 11)]

    def shown(most: int) -> str:
        found = diagnostics_snippet(reported, "a.go", "", 10, lambda one: one.text.count("\n") <= most)
        return found.text if found else ""

    assert shown(2) == "// line 10: message 9\n// line 12: message 11\n"
    assert shown(9).count("\n") == 4
    assert shown(0) == ""
