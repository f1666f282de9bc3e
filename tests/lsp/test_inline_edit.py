"""Next edits over the protocol, as Copilot's clients ask for them."""

from typing import Any

import pytest
from lsprotocol import types
from tests.lsp.editor import Editor

FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(12))
USES = f"import old_name¦\n{FILLER}keep(old_name, 1)\n{FILLER}show(old_name)\n"


async def asked(editor: Editor, **context: Any) -> list[dict[str, Any]]:
    params = {
        "textDocument": {"uri": editor.uri, "version": editor.version},
        # Lua has no whole numbers of its own.
        "position": {"line": float(editor.position.line), "character": float(editor.position.character)},
        "context": {"triggerKind": 2, **context},
    }
    answer = await editor.client.protocol.send_request_async("textDocument/copilotInlineEdit", params)
    return [plain(edit) for edit in plain(answer)["edits"]]


def plain(value: Any) -> Any:
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    return [plain(item) for item in value]


def renamed(editor: Editor) -> None:
    """Types another name over the imported one."""
    editor.delete(len("old_name"))
    editor.type("new_name")


def accept(editor: Editor, edit: dict[str, Any]) -> None:
    """Applies an edit as an editor does, with the cursor behind it."""
    start, end = edit["range"]["start"], edit["range"]["end"]
    lines = editor.text.split("\n")
    low = sum(len(line) + 1 for line in lines[: start["line"]]) + start["character"]
    high = sum(len(line) + 1 for line in lines[: end["line"]]) + end["character"]
    text = editor.text
    editor.before, editor.after = text[:low], text[low:high] + text[high:]
    span = types.Range(types.Position(**start), types.Position(**end))
    editor._change(span, edit["text"])
    editor.before, editor.after = text[:low] + edit["text"], text[high:]


async def notify(editor: Editor, method: str, edit: dict[str, Any]) -> None:
    editor.client.protocol.notify(f"textDocument/{method}", {"item": edit})
    await editor.command("lacuna.status")  # the notification is handled before it


async def test_one_place_at_a_time_and_the_next_after_its_acceptance(editor: Editor) -> None:
    await editor.begin(USES, ready=False)
    assert await asked(editor) == []
    renamed(editor)
    place = {"line": 13, "character": 0}
    marked = {"range": {"start": place, "end": place}, "message": {"kind": "markdown", "value": "`old_name`?"}}
    (edit,) = await asked(editor, diagnostics=[marked])
    assert edit["text"] == "keep(new_name, 1)"
    assert edit["range"]["start"] == {"line": 13, "character": 0}
    assert edit["textDocument"] == {"uri": editor.uri, "version": editor.version}
    await notify(editor, "didShowInlineEdit", edit)
    accept(editor, edit)
    command = edit["command"]
    await editor.command(command["command"], *command["arguments"])
    (edit,) = await asked(editor)
    assert edit["text"] == "show(new_name)"
    accept(editor, edit)
    assert await asked(editor) == []
    assert "old_name" not in editor.text


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\x85", "\u2028"], ids=ascii)
async def test_characters_that_end_no_line_of_an_editor_end_none(editor: Editor, mark: str) -> None:
    await editor.begin(USES.replace("keep(", f"# {mark}\nkeep("), ready=False)
    renamed(editor)
    (edit,) = await asked(editor)
    assert edit["range"]["start"] == {"line": 14, "character": 0}
    accept(editor, edit)
    assert "keep(new_name, 1)" in editor.text
    (edit,) = await asked(editor)
    accept(editor, edit)
    assert "old_name" not in editor.text


async def test_a_dismissed_edit_does_not_come_back(editor: Editor) -> None:
    """vscode#256291: Escape is for good, and silences the other places until the user edits again."""
    await editor.begin(USES, ready=False)
    renamed(editor)
    (edit,) = await asked(editor)
    await notify(editor, "didRejectInlineEdit", edit)
    assert await asked(editor) == []
    editor.type("s")
    (edit,) = await asked(editor)
    assert edit["text"] == "keep(new_names, 1)"
    editor.delete(1)
    editor.delete(1)
    editor.type("e")  # the name for which the first place was dismissed
    (edit,) = await asked(editor)
    assert edit["text"] == "show(new_name)"


async def test_nothing_is_offered_on_backspace(editor: Editor) -> None:
    """tabby#2840."""
    await editor.begin(USES, ready=False)
    renamed(editor)
    editor.delete(1)
    assert await asked(editor) == []
    editor.type("e")
    assert len(await asked(editor)) == 1


async def test_other_open_documents_are_offered_only_to_clients_that_go_there(editor: Editor) -> None:
    await editor.initialize(ready=False)
    editor.open(f"{FILLER}show(old_name_of_it)\n", name="other.py")
    other = editor.uri
    editor.open(f"def old_name_of_it¦():\n    pass\n{FILLER}", name="here.py")
    editor.delete(len("old_name_of_it"))
    editor.type("new_name_of_it")
    assert await asked(editor) == []
    (edit,) = await asked(editor, otherDocuments=True)
    assert edit["textDocument"]["uri"] == other
    assert edit["text"] == "show(new_name_of_it)"


@pytest.mark.parametrize("key", ["none", "letter", "backspace"])
async def test_an_edit_accepted_in_another_document_is_followed_by_the_next_place_there(
    editor: Editor, key: str
) -> None:
    await editor.initialize(ready=False)
    editor.open(f"{FILLER}# a note¦\n{FILLER}show(old_name_of_it)\n{FILLER}keep(old_name_of_it, 1)\n", name="other.py")
    if key == "letter":
        editor.type("s")
    if key == "backspace":
        editor.delete(1)
    other = editor.uri, editor.version, editor.before, editor.after
    editor.open(f"def old_name_of_it¦():\n    pass\n{FILLER}", name="here.py")
    editor.delete(len("old_name_of_it"))
    editor.type("new_name_of_it")
    (edit,) = await asked(editor, otherDocuments=True)
    assert edit["text"] == "show(new_name_of_it)"
    editor.uri, editor.version, editor.before, editor.after = other
    accept(editor, edit)
    (edit,) = await asked(editor)
    assert edit["text"] == "keep(new_name_of_it, 1)"
    accept(editor, edit)
    assert await asked(editor) == []
    assert "old_name_of_it" not in editor.text


@pytest.mark.parametrize("options", [{"nextEdit": False}, {"enabled": False}, {"disabledLanguages": ["python"]}])
async def test_settings_turn_next_edits_off(editor: Editor, options: dict[str, object]) -> None:
    await editor.initialize(options, ready=False)
    editor.open(USES)
    renamed(editor)
    assert await asked(editor) == []


async def test_a_snooze_holds_back_next_edits_that_nobody_asked_for(editor: Editor) -> None:
    await editor.begin(USES, ready=False)
    renamed(editor)
    await editor.command("lacuna.snooze", {"minutes": 5})
    assert await asked(editor) == []
    assert len(await asked(editor, triggerKind=1)) == 1
    await editor.command("lacuna.snooze", {"minutes": 0})
    assert len(await asked(editor)) == 1


async def test_an_edit_elsewhere_begins_another_change(editor: Editor) -> None:
    await editor.begin(USES, ready=False)
    renamed(editor)
    editor.before, editor.after = editor.text, ""
    editor.type("# a remark")
    assert await asked(editor) == []
