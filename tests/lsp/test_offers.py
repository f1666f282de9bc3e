from dataclasses import dataclass, field
from typing import Any

import pytest

from lacuna_lsp.document import ClientDocument
from lacuna_lsp.offers import ROWS, Offer, near, offers, probability
from lacuna_model.core.params import FillStats, InfillResult, PastChange, Status
from lacuna_model.languages.registry import language_for
from lacuna_model.next_edit.changes import RecentChange, TokenizedText
from lacuna_model.text.diff import Hunk
from lacuna_server.wire.protocol import ServiceError

FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(12))
OLD = "".join(f"line_{n} = {n}\n" for n in range(30))
NEW = OLD.replace("line_3 = 3", "row_3 = 3")
CHANGE = RecentChange(TokenizedText(OLD), TokenizedText(NEW), Hunk(3, 4, 3, 4))
BELOW = "".join(NEW.splitlines(keepends=True)[4 : 4 + ROWS])


def offered(old: str, new: str, past: tuple[PastChange, ...] = (), language: str = "") -> list[Offer]:
    rows = old.splitlines(), new.splitlines()
    known = language_for(name=language) if language else None
    row = next(row for row, (a, b) in enumerate(zip(*rows, strict=False)) if a != b)
    change = RecentChange(TokenizedText(old), TokenizedText(new), Hunk(row, row + 1, row, row + 1), known)
    return offers(change, "file:///a", new, past, where="here")


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


@dataclass
class Answers:
    """An engine that rewrites every region to ``fill``."""

    fill: str = BELOW
    log_probs: tuple[float, ...] = (-0.1,) * (ROWS + 4)
    status: Status = "ok"
    follows_edits: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def infill(self, document: ClientDocument, regions: Any, **more: Any) -> InfillResult:
        self.asked.append({"region": regions[0], **more})
        return InfillResult(self.status, (self.fill,), FillStats(), likelihoods=(self.log_probs,))


async def written_near(engine: Answers, past: tuple[PastChange, ...] = (), text: str = NEW) -> list[Offer]:
    document = ClientDocument("file:///a.py", text, 1, "python", "utf-16")
    return await near(engine, document, CHANGE, past, 3)  # type: ignore[arg-type]


async def test_each_place_that_the_model_changes_is_an_offer_with_a_probability() -> None:
    log_probs = [-0.1] * ROWS
    log_probs[2], log_probs[6] = -3.0, -0.5
    fill = BELOW.replace("line_6", "row_6").replace("line_10", "row_10")
    found = await written_near(Answers(fill, tuple(log_probs)))
    assert [(one.row, one.end_row, one.old, one.new) for one in found] == [
        (6, 7, "line_6 = 6\n", "row_6 = 6\n"),
        (10, 11, "line_10 = 10\n", "row_10 = 10\n"),
    ]
    assert [one.probability for one in found] == [probability(-3.0), probability(-0.5)]


@pytest.mark.parametrize(
    ("old", "now", "new"),
    [
        ("show(rows)", "show(rows, by_name, first)", "show(rows, by_name)"),
        ("show(rows)", "show(rows, by_name)", "show(rows, )"),
        ("show(rows, by_name)", "show(rows)", "show(rows, by)"),
        ("show(old_rows)", "show(new_rows)", "show(_rows)"),
    ],
)
async def test_no_part_of_a_change_is_undone(old: str, now: str, new: str) -> None:
    text, fill = NEW.replace("line_6 = 6", now), BELOW.replace("line_6 = 6", new)
    assert len(await written_near(Answers(fill), text=text)) == 1
    assert await written_near(Answers(fill), (PastChange("a.py", old, now),), text=text) == []
    further = BELOW.replace("line_6 = 6", now.replace("show", "print"))
    assert len(await written_near(Answers(further), (PastChange("a.py", old, now),), text=text)) == 1


@pytest.mark.parametrize(
    "added", ["import os\n", "from a import (b)\n", "use std::fs;\n", "#include <a.h>\n", "\n", "   \n"]
)
async def test_imports_and_blanks_alone_are_no_offer(added: str) -> None:
    assert await written_near(Answers(BELOW.replace("line_5", f"{added}line_5"))) == []
    beside = BELOW.replace("line_5 = 5", f"{added}line_5 = os")
    assert len(await written_near(Answers(beside))) == 1


async def test_what_a_change_has_deleted_is_not_brought_back() -> None:
    """vscode-copilot-release#8763: the model inserts the line that the user has just deleted."""
    inserted = BELOW.replace("line_5", "close()\nline_5")
    assert len(await written_near(Answers(inserted))) == 1
    assert await written_near(Answers(inserted), (PastChange("a.py", "close()\nshow()", "show()"),)) == []


async def test_a_model_that_does_not_answer_in_time_is_told_from_one_that_changes_nothing() -> None:
    with pytest.raises(ServiceError, match="no next edit within"):
        await written_near(Answers("x\n", status="deadline"))


async def test_below_a_change_at_the_end_nothing_is_rewritten() -> None:
    engine = Answers()
    text = "".join(NEW.splitlines(keepends=True)[:4]) + "\n\n"
    assert await written_near(engine, text=text) == []
    assert engine.asked == []
