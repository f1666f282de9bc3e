"""``lacuna.edit`` and ``lacuna.regenerate``: lines rewritten or written again, and the code actions that offer it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Union
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from .editor import Editor, until
from .service import Daemon

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
    assert [one.needs_confirmation for one in editor.annotations] == [True]
    (region,) = daemon.requests[0]["regions"]
    assert (region["start"], region["end"]) == (9, 19)
    assert daemon.requests[0]["task"] == {"type": "edit", "instruction": "count"}


async def test_the_preview_says_what_to_look_at(editor: Editor, daemon: Daemon) -> None:
    why = "the new text no longer defines a"
    daemon.plan(fills=["    c = 10\n"], warnings=[why])
    await editor.begin(TEXT)
    answer = await editor.command("lacuna.edit", asked(editor))
    assert (answer["status"], answer["message"]) == ("applied", why)
    assert editor.applied[0].label == f"Edit: count ({why})"
    assert [one.label for one in editor.annotations] == [f"count (look at this: {why})"]


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


STUBS = '''def f(x):
    """Doc."""
    return <<fill>>


class A:
    def g(self):
        ...

    def h(self):
        pass
'''


async def titles(
    editor: Editor,
    start: tuple[int, int],
    end: tuple[int, int],
    *,
    automatic: bool = False,
    only: list[types.CodeActionKind] | None = None,
    diagnostics: Sequence[types.Diagnostic] = (),
) -> dict[str, types.CodeAction]:
    # lsprotocol parses every code action as a command.
    either, wire = Union[types.Command, types.CodeAction], editor.client.protocol._converter  # noqa: UP007 (its own spelling)
    wire.register_structure_hook(either, lambda data, _: wire.structure(data, types.CodeAction))
    kind = types.CodeActionTriggerKind.Automatic if automatic else types.CodeActionTriggerKind.Invoked
    answer = await editor.client.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(editor.uri),
            types.Range(types.Position(*start), types.Position(*end)),
            types.CodeActionContext(list(diagnostics), only=only, trigger_kind=kind),
        )
    )
    return {action.title: action for action in answer or () if isinstance(action, types.CodeAction)}


async def test_applicable_actions_are_offered(editor: Editor) -> None:
    await editor.begin(STUBS, ready=False)
    found = await titles(editor, (7, 0), (8, 0))
    assert {"Fill 1 <<fill>> marker", "Regenerate the selection", "Fill 2 empty bodies in A"} <= set(found)
    assert any(title.startswith("Add a docstring") for title in found)
    assert not any("test" in title for title in found)


async def test_a_changed_line_can_be_propagated(editor: Editor) -> None:
    await editor.begin("f(a¦)\nf(b)\n", ready=False)
    assert not [title for title in await titles(editor, (0, 0), (0, 0)) if "all places like it" in title]
    editor.type(", 1")
    assert [title for title in await titles(editor, (0, 0), (0, 0)) if "all places like it" in title]
    assert not [title for title in await titles(editor, (1, 0), (1, 0)) if "all places like it" in title]


async def test_an_automatic_request_gets_only_the_cheap_actions(editor: Editor) -> None:
    await editor.begin(STUBS, ready=False)
    assert list(await titles(editor, (7, 0), (7, 0), automatic=True)) == ["Fill 1 <<fill>> marker"]
    assert await titles(editor, (7, 0), (7, 0), only=[types.CodeActionKind.SourceOrganizeImports]) == {}


OLD = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 7}}


async def test_alternatives_are_offered_and_the_chosen_one_taken(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["old", "new", "newer", "new"])
    editor.answers = ["2: newer"]
    await editor.begin("a = old\n")
    said = [{"line": 0, "message": "undefined name"}]
    answer = await editor.do("regenerate", range=OLD, diagnostics=said)
    assert answer["alternatives"] == ["new", "newer"]
    assert [action.title for action in editor.asked[0].actions or ()] == ["1: new", "2: newer"]
    assert editor.edited() == "a = newer\n"
    (request,) = daemon.requests
    assert request["task"]["candidates"] == 4
    assert (request["regions"][0]["start"], request["regions"][0]["end"]) == (4, 7)
    assert request["regions"][0]["single_line"]


async def test_a_client_may_choose_an_alternative_by_itself(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["new"])
    await editor.begin("a = old\n")
    answer = await editor.do("regenerate", range=OLD, choose=False)
    assert answer == {"status": "offered", "alternatives": ["new"]}
    assert editor.asked == editor.applied == []
