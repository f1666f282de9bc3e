"""What the model writes near a change, with an engine that answers a given text."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from lacuna_lsp.client.errors import UnfinishedError
from lacuna_lsp.client.news import News
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.next_edit.offers import Offer
from lacuna_lsp.next_edit.writing import LEAST, ROWS, WINDOW_ROWS, around, near, probability, window
from lacuna_model.core.params import FillStats, InfillResult, PastChange, Status
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.tokens import TokenizedText
from lacuna_model.text.diff import Hunk
from lacuna_server.wire.protocol import ServiceError

OLD = "".join(f"line_{n} = {n}\n" for n in range(30))
NEW = OLD.replace("line_3 = 3", "row_3 = 3")
CHANGE = RecentChange(TokenizedText(OLD), TokenizedText(NEW), Hunk(3, 4, 3, 4))
BELOW = "".join(NEW.splitlines(keepends=True)[4 : 4 + ROWS])


@dataclass
class Answers:
    """An engine that rewrites every region to ``fill``."""

    fill: str = BELOW
    log_probs: tuple[float, ...] = (-0.1,) * (ROWS + 4)
    news: News = field(default_factory=lambda: News("ready"))
    status: Status = "ok"
    error: Exception | None = None
    follows_edits: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def infill(self, document: ClientDocument, regions: Any, **more: Any) -> InfillResult:
        self.asked.append({"region": regions[0], **more})
        if self.error is not None:
            raise self.error
        return InfillResult(self.status, (self.fill,), FillStats(), likelihoods=(self.log_probs,))


async def offered(engine: Answers, past: tuple[PastChange, ...] = (), text: str = NEW) -> list[Offer]:
    document = ClientDocument("file:///a.py", text, 1, "python", "utf-16")
    return await near(engine, document, CHANGE, past, 3)  # type: ignore[arg-type]


async def test_each_place_that_the_model_changes_is_an_offer_with_a_probability() -> None:
    log_probs = [-0.1] * ROWS
    log_probs[2], log_probs[6] = -3.0, -0.5
    fill = BELOW.replace("line_6", "row_6").replace("line_10", "row_10")
    found = await offered(Answers(fill, tuple(log_probs)))
    assert [(one.row, one.end_row, one.old, one.new) for one in found] == [
        (6, 7, "line_6 = 6\n", "row_6 = 6\n"),
        (10, 11, "line_10 = 10\n", "row_10 = 10\n"),
    ]
    assert [one.probability for one in found] == [probability(-3.0), probability(-0.5)]


async def test_an_unchanged_window_is_no_offer() -> None:
    assert await offered(Answers()) == []


async def test_the_model_reads_the_last_changes_and_then_this_one() -> None:
    engine = Answers()
    await offered(engine, tuple(PastChange("a.py", f"old {n}", f"new {n}") for n in range(5)))
    (asked,) = engine.asked
    *earlier, last = asked["task"].changes
    assert [(one.old, one.new) for one in earlier] == [(f"old {n}", f"new {n}") for n in (2, 3, 4)]
    assert last == around("/a.py", CHANGE)
    assert "line_2 = 2\nrow_3 = 3\nline_4 = 4" in last.new


async def test_a_change_and_an_accepted_edit_are_not_reverted() -> None:
    fill = BELOW.replace("line_6 = 6", "seven = 7")
    assert len(await offered(Answers(fill))) == 1
    assert await offered(Answers(fill), (PastChange("a.py", "seven = 7", "line_6 = 6"),)) == []


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
    assert len(await offered(Answers(fill), text=text)) == 1
    assert await offered(Answers(fill), (PastChange("a.py", old, now),), text=text) == []
    further = BELOW.replace("line_6 = 6", now.replace("show", "print"))
    assert len(await offered(Answers(further), (PastChange("a.py", old, now),), text=text)) == 1


@pytest.mark.parametrize(
    "added", ["import os\n", "from a import (b)\n", "use std::fs;\n", "#include <a.h>\n", "\n", "   \n"]
)
async def test_imports_and_blanks_alone_are_no_offer(added: str) -> None:
    assert await offered(Answers(BELOW.replace("line_5", f"{added}line_5"))) == []
    beside = BELOW.replace("line_5 = 5", f"{added}line_5 = os")
    assert len(await offered(Answers(beside))) == 1


async def test_what_a_change_has_deleted_is_not_brought_back() -> None:
    """vscode-copilot-release#8763: the model inserts the line that the user has just deleted."""
    inserted = BELOW.replace("line_5", "close()\nline_5")
    assert len(await offered(Answers(inserted))) == 1
    assert await offered(Answers(inserted), (PastChange("a.py", "close()\nshow()", "show()"),)) == []


@pytest.mark.parametrize(
    "engine",
    [
        Answers("x\n", news=News("loading")),
        Answers("x\n", status="deadline"),
        Answers("x\n", error=ServiceError("bad_request", "the model has no token that separates files")),
        Answers("x\n", error=OSError()),
    ],
)
async def test_a_model_that_does_not_answer_is_told_from_one_that_changes_nothing(engine: Answers) -> None:
    with pytest.raises(UnfinishedError):
        await offered(engine)


async def test_what_does_not_fit_is_no_offer() -> None:
    assert await offered(Answers("x\n", status="no_valid_fill")) == []


async def test_below_a_change_at_the_end_nothing_is_rewritten() -> None:
    engine = Answers()
    text = "".join(NEW.splitlines(keepends=True)[:4]) + "\n\n"
    assert await offered(engine, text=text) == []
    assert engine.asked == []


def test_the_window_is_below_the_change_or_around_the_cursor() -> None:
    assert window(CHANGE, 30, 25, made_for_it=False) == (4, 4 + ROWS)
    assert window(CHANGE, 8, 25, made_for_it=False) == (4, 8)
    assert window(CHANGE, 30, 15, made_for_it=True) == (5, 5 + WINDOW_ROWS)
    assert window(CHANGE, 30, 2, made_for_it=True) == (0, WINDOW_ROWS)
    assert window(CHANGE, 30, 29, made_for_it=True) == (30 - WINDOW_ROWS, 30)
    assert window(CHANGE, 5, 2, made_for_it=True) == (0, 5)


def test_a_probability_grows_with_the_log_probability_and_has_no_extremes() -> None:
    assert probability(-1e6) == probability(LEAST) < probability(-2.0) < probability(0.0) < 1.0


def test_the_offer_is_known_again_by_its_texts() -> None:
    one = Offer("u", 1, 2, " a\n", " b\n", 0.5)
    assert msgspec.structs.replace(one, row=9).key == one.key
