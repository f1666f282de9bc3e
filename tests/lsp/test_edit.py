"""``lacuna.edit``: lines rewritten by an instruction, previewed, and applied only to the text they were made for."""

import asyncio
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from .editor import Editor, until
from .service import Daemon
from .test_code_action import titles

TEXT = "def f():\n    a = 1\n    b = 2\n"
SPAN = {"start": {"line": 1, "character": 6}, "end": {"line": 1, "character": 8}}


def asked(editor: Editor, instruction: str = "count", **more: object) -> dict[str, object]:
    return {"textDocument": {"uri": editor.uri}, "range": SPAN, "instruction": instruction, **more}


async def test_the_lines_of_the_range_are_rewritten_after_a_preview(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["    a = 10\n"])
    await editor.begin(TEXT)
    answer = await editor.command("lacuna.edit", asked(editor))
    assert answer["status"] == "applied"
    assert editor.edited() == TEXT.replace("1", "10")
    assert [seen[0].title for seen in editor.progress] == ["Edit: count"]
    (applied,) = editor.applied
    annotations = applied.edit.change_annotations
    assert annotations is not None
    assert [one.needs_confirmation for one in annotations.values()] == [True]
    (region,) = daemon.requests[0]["regions"]
    assert (region["start"], region["end"]) == (9, 19)
    assert daemon.requests[0]["task"] == {"type": "edit", "instruction": "count"}


async def test_the_preview_says_what_to_look_at(editor: Editor, daemon: Daemon) -> None:
    why = "the new text no longer defines a"
    daemon.plan(fills=["    c = 10\n"], warnings=[why])
    await editor.begin(TEXT)
    answer = await editor.command("lacuna.edit", asked(editor))
    assert (answer["status"], answer["message"]) == ("applied", why)
    (applied,) = editor.applied
    assert applied.label == f"Edit: count ({why})"
    annotations = applied.edit.change_annotations
    assert annotations is not None
    assert [one.label for one in annotations.values()] == [f"count (look at this: {why})"]


@pytest.mark.parametrize(
    ("instruction", "plan", "why"),
    [
        (" ", {}, "the instruction is empty"),
        ("x", {"status": "no_valid_fill", "message": "no valid text was found"}, "no valid text was found"),
    ],
)
async def test_a_refusal_is_one_line(
    editor: Editor, daemon: Daemon, instruction: str, plan: dict[str, object], why: str
) -> None:
    daemon.plan(**plan)
    await editor.begin(TEXT)
    with pytest.raises(JsonRpcException, match=why):
        await editor.command("lacuna.edit", asked(editor, instruction))


@pytest.mark.parametrize("answers", [["Show"], []])
async def test_a_button_of_a_refusal_shows_what_the_model_wrote(
    editor: Editor, daemon: Daemon, answers: list[str]
) -> None:
    daemon.plan(status="no_valid_fill", message="the new text is empty", fills=["    a = 1\n"], refused=["    a = 7\n"])
    editor.answers = answers
    await editor.begin(TEXT)
    answer = await editor.command("lacuna.edit", asked(editor))
    assert answer == {"status": "refused", "message": "the new text is empty; nothing was changed"}
    assert [one.message for one in editor.asked] == ["Lacuna: the new text is empty; nothing was changed"]
    assert editor.applied == []
    assert len(editor.client.shown_documents) == len(answers)
    for shown in editor.client.shown_documents:
        path = Path(url2pathname(urlparse(shown.uri).path))
        assert path.read_text().splitlines()[-2:] == ["-    a = 1", "+    a = 7"]
        assert path.stat().st_mode & 0o077 == 0


async def test_nothing_is_edited_when_the_document_changed_meanwhile(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["    a = 10\n"], steps=20, pause=0.02)
    await editor.begin(f"{TEXT}¦")
    command = asyncio.ensure_future(editor.command("lacuna.edit", asked(editor)))
    await until(lambda: daemon.requests)
    editor.type("c")
    answer = await command
    assert answer["status"] == "stale"
    assert answer["texts"] == {editor.uri: ["    a = 10\n"]}
    assert editor.applied == []


async def test_a_problem_is_offered_to_be_solved(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["    a = 10\n"])
    await editor.begin(TEXT)
    span = types.Range(types.Position(1, 4), types.Position(1, 5))
    found = await titles(editor, (1, 0), (2, 0), diagnostics=[types.Diagnostic(span, "a is too small")])
    command = found["Solve: a is too small"].command
    assert command is not None
    (argument,) = command.arguments or ()
    assert "a is too small" in argument["instruction"]
    assert (await editor.command(command.command, argument))["status"] == "applied"
    assert not any(title.startswith("Edit the selection") for title in found)


async def test_a_refactor_by_an_instruction_rewrites_every_place(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["    a = 10\n"])
    await editor.begin(TEXT)
    argument = {"pattern": "a = 1", "language": "python", "instruction": "ten times"}
    answer = await editor.command("lacuna.refactor", {**argument, "textDocument": {"uri": editor.uri}})
    assert answer["status"] == "applied"
    assert editor.edited() == TEXT.replace("1", "10")
    with pytest.raises(JsonRpcException, match="takes the place of a template"):
        await editor.command("lacuna.refactor", {**argument, "template": "b"})


async def test_a_client_that_shows_no_documents_gets_the_refusal_alone(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(status="no_valid_fill", message="the new text is empty", fills=["    a = 1\n"], refused=["    a = 7\n"])
    await editor.initialize(without="window.show_document")
    editor.open(TEXT)
    with pytest.raises(JsonRpcException, match="the new text is empty; nothing was changed"):
        await editor.command("lacuna.edit", asked(editor))


async def test_a_client_that_asks_the_user_is_offered_any_edit(editor: Editor) -> None:
    await editor.initialize(experimental={"lacunaInstructions": True}, ready=False)
    editor.open(TEXT)
    command = (await titles(editor, (1, 0), (2, 0)))["Edit the selection by an instruction…"].command
    assert command is not None
    assert command.command == "lacuna.edit"
