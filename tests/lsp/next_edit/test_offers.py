import pytest

from lacuna_lsp.next_edit.offers import Offer, offers, ordered
from lacuna_model.core.params import PastChange
from lacuna_model.languages.registry import language_for
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.tokens import TokenizedText
from lacuna_model.text.diff import Hunk

FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(12))


def offered(old: str, new: str, past: tuple[PastChange, ...] = (), language: str = "") -> list[Offer]:
    rows = old.splitlines(), new.splitlines()
    known = language_for(name=language) if language else None
    row = next(row for row, (a, b) in enumerate(zip(*rows, strict=False)) if a != b)
    return offers(
        RecentChange(TokenizedText(old), TokenizedText(new), Hunk(row, row + 1, row, row + 1), known),
        "file:///a",
        new,
        past,
        where="here",
    )


def test_neighbouring_lines_are_one_offer_of_whole_lines() -> None:
    uses = "keep(old_name, 1)\ndrop(old_name, 2)\n"
    old = "import old_name\n" + FILLER + uses + FILLER + "show(old_name)\n"
    found = offered(old, old.replace("import old_name", "import new_name", 1))
    assert [(one.row, one.end_row, one.new) for one in found] == [
        (13, 15, uses.replace("old_name", "new_name")),
        (27, 28, "show(new_name)\n"),
    ]


def test_what_was_just_done_is_not_undone() -> None:
    """vscode-copilot-release#8763: the user turns a change back, and its other places are not offered the old text."""
    old = "import new_name\n" + FILLER + "show(new_name)\n"
    new = old.replace("import new_name", "import old_name", 1)
    assert [one.new for one in offered(old, new)] == ["show(old_name)\n"]
    accepted = PastChange("a.py", "show(old_name)", "show(new_name)")
    assert offered(old, new, (accepted,)) == []


def test_the_next_place_below_the_cursor_comes_first() -> None:
    found = [Offer("u", row, row + 1, "a", "b", 1.0) for row in (2, 9, 30, 14)]
    assert [one.row for one in ordered(found, 10)] == [14, 30, 9, 2]


def test_a_message_of_the_compiler_about_the_old_name_makes_its_line_likely_enough() -> None:
    uses = "".join(f"shown_{n} = draw_{n}(rows, {n})\nother_{n} = make_{n}(cols_{n})\n" for n in range(8))
    old = "total = count(rows)\n" + FILLER + uses
    new = old.replace("count(rows)", "count(lines)", 1)
    change = RecentChange(TokenizedText(old), TokenizedText(new), Hunk(0, 1, 0, 1))

    def rows(told: dict[int, str]) -> list[int]:
        return [one.row for one in offers(change, "file:///a", new, (), where="here", told=told)]

    assert rows({}) == rows({15: "undefined name 'cols_1'"}) == []
    assert rows({15: "undefined name 'rows'"}) == [15]


@pytest.mark.parametrize("language", ["", "python"], ids=["by the line", "by the tree"])
def test_a_name_in_a_string_is_an_offer_of_its_own(language: str) -> None:
    uses = "check(old_codec, 'old_codec')\nshow(old_codec)  # by old_codec\n"
    old = "import old_codec\n" + FILLER + uses + FILLER
    found = offered(old, old.replace("import old_codec", "import new_codec", 1), language=language)
    assert [(one.row, one.end_row, one.new) for one in found] == [
        (13, 15, "check(new_codec, 'old_codec')\nshow(new_codec)  # by old_codec\n"),
        (13, 14, "check(old_codec, 'new_codec')\n"),
        (14, 15, "show(old_codec)  # by new_codec\n"),
    ]
