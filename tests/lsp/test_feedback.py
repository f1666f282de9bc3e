import json
import re
import urllib.request
from pathlib import Path

import pytest
from lsprotocol import types

from lacuna_model.hub.atomic import ANSWERS

from .editor import Editor, connected, until
from .service import Daemon


def counted(daemon: Daemon) -> dict[str, int]:
    """The service's count of every kind of feedback."""
    with urllib.request.urlopen(f"{daemon.running.url}/metrics") as answer:
        text = answer.read().decode()
    return {kind: int(float(count)) for kind, count in re.findall(r'lacuna_feedback_total{kind="(\w+)"} (\S+)', text)}


def rejected(daemon: Daemon, before: dict[str, int]) -> int:
    return counted(daemon).get("rejected", 0) - before.get("rejected", 0)


def as_json(editor: Editor, item: types.InlineCompletionItem) -> object:
    return editor.client.protocol._converter.unstructure(item)


def kept(daemon: Daemon) -> object:
    """The answers that are kept on the machine, in a file for this user alone."""
    file = Path(daemon.environment["XDG_STATE_HOME"]) / "lacuna" / ANSWERS
    assert file.stat().st_mode & 0o777 == 0o600
    return json.loads(file.read_text())


async def test_feedback_about_a_suggestion_reaches_the_service(editor: Editor, daemon: Daemon) -> None:
    before = counted(daemon)
    await editor.begin()
    (item,) = await editor.items()
    shown = as_json(editor, item)
    editor.client.protocol.notify("textDocument/didShowCompletion", {"item": shown})
    editor.client.protocol.notify("textDocument/didPartiallyAcceptCompletion", {"item": shown, "acceptedLength": 3})
    assert item.command is not None
    await editor.command(item.command.command, *(item.command.arguments or ()))
    await until(lambda: counted(daemon).get("accepted", 0) == before.get("accepted", 0) + 1)
    after = counted(daemon)
    for kind, count in (("shown", 1), ("partly_accepted", 1), ("accepted", 1), ("rejected", 0)):
        assert after.get(kind, 0) - before.get(kind, 0) == count


async def test_a_taken_suggestion_that_is_edited_is_not_refused(editor: Editor, daemon: Daemon) -> None:
    before = counted(daemon)
    await editor.begin()
    (item,) = await editor.items()
    editor.type(str(item.insert_text))
    assert item.command is not None
    await editor.command(item.command.command, *(item.command.arguments or ()))
    editor.delete(1)
    await editor.suggest()
    editor.type("x")
    await editor.suggest()
    await until(lambda: counted(daemon).get("accepted", 0) == before.get("accepted", 0) + 1)
    assert rejected(daemon, before) == 0


async def test_a_move_of_the_cursor_rejects_nothing(editor: Editor, daemon: Daemon) -> None:
    before = counted(daemon)
    await editor.begin("value = ¦\nother = 1\n")
    assert await editor.suggest() == ["filled"]
    editor.before, editor.after = "value = \nother = 1", "\n"
    await editor.suggest()
    editor.before, editor.after = "value = ", "\nother = 1\n"
    assert await editor.suggest() == ["filled"]
    assert rejected(daemon, before) == 0


async def test_the_text_of_a_command_or_a_discarded_preview_rejects_nothing(editor: Editor, daemon: Daemon) -> None:
    before = counted(daemon)
    await editor.begin("value = ¦\nprint('a')\n")
    document = {"textDocument": {"uri": editor.uri}}
    place = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 8}}
    for command in (
        ("lacuna.refactor", document | {"recipe": "logging"}),
        ("lacuna.fillRegions", document | {"ranges": [place]}),
        ("lacuna.regenerate", document | {"range": place, "choose": False}),
    ):
        assert await editor.suggest() == ["filled"]
        editor.refusing = "" if command[0] == "lacuna.refactor" else None
        await editor.command(*command)
        editor.type("other()")  # simulates the result of the command, or an alternative that the client previews
        await editor.suggest()
        editor.delete(len("other()"))
        assert await editor.suggest() == ["filled"]
    assert rejected(daemon, before) == 0


async def test_a_refusal_is_one_answer_which_is_kept_when_the_editor_goes(
    language_server: Path, daemon: Daemon
) -> None:
    before = counted(daemon)
    async with connected(language_server) as editor:
        daemon.plan(fills=["first(words)", "second(words)", "third(words)"])
        await editor.begin()
        items = await editor.items(invoked=True)
        for item in items:
            editor.client.protocol.notify("textDocument/didRejectCompletion", {"item": as_json(editor, item)})
        editor.type("x\ny = ")
        daemon.plan(fills=["first(words)"])
        assert await editor.suggest() == ["first(words)"]
        editor.type("other")
        await editor.suggest()
        await until(lambda: rejected(daemon, before) == len(items) + 1 == 4)
    assert kept(daemon) == {"python in line": [0.0, 0.0]}


@pytest.mark.parametrize(("end", "answer"), [("accepted", 1.0), ("left", 0.5), ("typed over", 0.5)])
async def test_a_suggestion_that_is_taken_word_by_word_is_one_answer(
    language_server: Path, daemon: Daemon, end: str, answer: float
) -> None:
    async with connected(language_server) as editor:
        daemon.plan(fills=["first second third fourth"])
        await editor.begin()
        (item,) = await editor.items()
        for length in (5, 12, 18):
            taken = {"item": as_json(editor, item), "acceptedLength": length}
            editor.client.protocol.notify("textDocument/didPartiallyAcceptCompletion", taken)
        if end == "accepted":
            assert item.command is not None
            await editor.command(item.command.command, *(item.command.arguments or ()))
        if end == "typed over":
            editor.type("first other")
            await editor.suggest()
    assert kept(daemon) == {"python in line": [answer]}
