import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from .editor import Editor, edited, until
from .service import Daemon

TEMPLATE = {"pattern": "get($$$ARGS)", "template": "get($$$ARGS, timeout=<<fill>>)", "language": "python"}


def project(folder: Path, lead: str = "") -> None:
    (folder / "a.py").write_text("# 😀\nx = get('ä', 1)\ny = get(z)\n")
    (folder / "b.py").write_text(f"{lead}def f():\n    return get(1)\n")
    (folder / "c.txt").write_text("get(1)\n")
    (folder / ".gitignore").write_text("ignored.py\n")
    (folder / "ignored.py").write_text("get(1)\n")


def documents(edit: types.WorkspaceEdit) -> dict[str, types.TextDocumentEdit]:
    found: dict[str, types.TextDocumentEdit] = {}
    for change in edit.document_changes or ():
        assert isinstance(change, types.TextDocumentEdit)
        found[change.text_document.uri.rpartition("/")[2]] = change
    return found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_a_template_edits_a_folder_after_a_preview(
    editor: Editor, daemon: Daemon, tmp_path: Path, encoding: str
) -> None:
    daemon.plan(fills=["30"])
    project(tmp_path)
    await editor.initialize(folder=tmp_path, encoding=encoding)
    answer = await editor.command("lacuna.refactor", TEMPLATE)
    assert (answer["status"], answer["ready"], answer["failed"]) == ("applied", 3, 0)
    (applied,) = editor.applied
    assert applied.label == "get($$$ARGS) → get($$$ARGS, timeout=<<fill>>)"
    found = documents(applied.edit)
    assert set(found) == {"a.py", "b.py"}
    a = edited((tmp_path / "a.py").read_text(), found["a.py"].edits, encoding)
    assert a == "# 😀\nx = get('ä', 1, timeout=30)\ny = get(z, timeout=30)\n"
    annotations = applied.edit.change_annotations
    assert annotations is not None
    assert {note.label for note in annotations.values()} == {"get('ä', 1)", "get(z)", "get(1)"}
    assert all(note.needs_confirmation for note in annotations.values())


async def test_a_document_opened_by_its_real_path_is_refactored_as_it_is_in_the_editor(
    editor: Editor, daemon: Daemon, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "b.py").write_text("get(1)\n")
    (tmp_path / "link").symlink_to("real")
    daemon.plan(fills=["30"])
    await editor.initialize(folder=tmp_path / "link")
    editor.open("x = get(new)\n", uri=(tmp_path / "real" / "b.py").as_uri())
    await editor.command("lacuna.refactor", TEMPLATE)
    (change,) = documents(editor.applied[0].edit).values()
    assert (change.text_document.uri, change.text_document.version) == (editor.uri, editor.version)
    assert edited(editor.text, change.edits, "utf-16") == "x = get(new, timeout=30)\n"


async def test_a_folder_is_refactored_but_for_files_that_cannot_be_read_or_written(
    editor: Editor, tmp_path: Path
) -> None:
    long = f"{'n' * 240}.py"
    for name in ("locked.py", "open.py", long, "other.py"):
        (tmp_path / name).write_text("other(1)\n" if name == "other.py" else "old(1)\n")
    (tmp_path / "latin.py").write_bytes(b"old('caf\xe9')\n")
    for name in ("locked.py", "open.py"):
        (tmp_path / name).chmod(0o444)
    await editor.initialize(folder=tmp_path)
    editor.open("old(2)\n", uri=(tmp_path / "open.py").as_uri())
    wanted = {"pattern": "old($A)", "template": "fresh($A)", "language": "python"}
    answer = await editor.command("lacuna.refactor", wanted)
    assert set(documents(editor.applied[0].edit)) == {"open.py", long}
    assert list(answer["leftOut"]) == [
        f"{tmp_path / 'latin.py'} is not UTF-8 text: byte 0xe9 at offset 8",
        f"{tmp_path / 'locked.py'} is read-only; not changed",
    ]


async def test_a_file_that_changes_meanwhile_is_not_edited(editor: Editor, daemon: Daemon, tmp_path: Path) -> None:
    daemon.plan(fills=["30"], steps=30, pause=0.02)
    project(tmp_path)
    await editor.initialize(folder=tmp_path)
    command = asyncio.ensure_future(editor.command("lacuna.refactor", TEMPLATE))
    await until(lambda: daemon.requests)
    (tmp_path / "b.py").write_text("def f():\n    return 7\n")
    assert (await command)["status"] == "stale"
    assert editor.applied == []
    assert editor.messages[0].endswith(f"nothing was edited, {tmp_path / 'b.py'} has changed meanwhile")


async def test_a_recipe_edits_one_document(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["Adds two numbers."])
    await editor.begin("def add(a, b):\n    return a + b\n")
    await editor.command("lacuna.refactor", {"recipe": "docstrings", "textDocument": {"uri": editor.uri}})
    assert editor.edited() == 'def add(a, b):\n    """Adds two numbers."""\n    return a + b\n'


async def test_what_is_open_and_not_saved_yet_is_refactored_with_the_folder(editor: Editor, tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "empty.py").touch()
    (tmp_path / "latin.py").write_bytes(b"x = 'caf\xe9'\n")
    await editor.initialize(folder=tmp_path)
    for name in ("new.py", "empty.py", "latin.py", "ignored.py", "deep/new.py"):
        editor.open("get(2)\n", uri=(tmp_path / name).as_uri())
    editor.open("get(2)\n", uri=(tmp_path / "script").as_uri())
    editor.open("get(2)\n", uri="untitled:Untitled-1")
    editor.open("get(2)\n", uri=(tmp_path.parent / "elsewhere.py").as_uri())
    editor.open("# Code generated by tool. DO NOT EDIT.\nget(2)\n", uri=(tmp_path / "made.py").as_uri())
    wanted = {"pattern": "get($A)", "template": "fresh($A)", "language": "python"}
    answer = await editor.command("lacuna.refactor", wanted)
    found = documents(editor.applied[0].edit)
    new = {"new.py", "empty.py", "latin.py", "script", "untitled:Untitled-1"}
    assert set(found) == {"a.py", "b.py"} | new
    assert len(editor.applied[0].edit.document_changes or ()) == 3 + len(new)  # new.py is in two folders
    assert all(found[name].text_document.version is not None for name in new)
    assert list(answer["leftOut"]) == [f"{tmp_path / 'made.py'} is generated or holds a credential"]


async def test_a_discarded_preview_is_declined_and_a_stale_one_is_reported(editor: Editor) -> None:
    await editor.begin("print('a')¦\n")
    wanted = {"recipe": "logging", "textDocument": {"uri": editor.uri}}
    editor.refusing = ""
    assert await editor.command("lacuna.refactor", wanted) == {
        "status": "declined", "ready": 1, "failed": 0, "leftOut": []
    }  # fmt: skip
    assert editor.messages == []
    editor.while_previewed = lambda: editor.type("!")
    assert (await editor.command("lacuna.refactor", wanted))["status"] == "stale"
    assert editor.messages[0].endswith("nothing was edited, /work/code.py has changed meanwhile")


async def test_a_client_without_preview_is_asked_in_one_message(editor: Editor, daemon: Daemon, tmp_path: Path) -> None:
    def without_annotations(capabilities: types.ClientCapabilities) -> None:
        assert capabilities.workspace is not None
        assert capabilities.workspace.workspace_edit is not None
        capabilities.workspace.workspace_edit.change_annotation_support = None

    daemon.plan(fills=["30"])
    project(tmp_path)
    await editor.initialize(folder=tmp_path, change=without_annotations)
    assert (await editor.command("lacuna.refactor", TEMPLATE))["status"] == "declined"
    assert editor.asked[0].message == "get($$$ARGS) → get($$$ARGS, timeout=<<fill>>): 3 edits in 2 files"
    editor.answers = ["Apply"]
    assert (await editor.command("lacuna.refactor", TEMPLATE))["status"] == "applied"
    editor.while_previewed = lambda: project(tmp_path, "# new\n")
    assert (await editor.command("lacuna.refactor", TEMPLATE))["status"] == "stale"
    assert len(editor.applied) == 1
    assert editor.messages[-1].endswith(f"nothing was edited, {tmp_path / 'b.py'} has changed meanwhile")


async def test_a_refactor_can_be_cancelled_half_way(editor: Editor, daemon: Daemon, tmp_path: Path) -> None:
    daemon.plan(fills=["30"], steps=500, pause=0.02)
    project(tmp_path)
    await editor.initialize(folder=tmp_path)
    command = asyncio.ensure_future(editor.command("lacuna.refactor", TEMPLATE))
    await until(lambda: daemon.requests)
    token = next(
        token for token, seen in editor.client.progress_reports.items() if seen and seen[0].title.startswith("get(")
    )
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    with pytest.raises(Exception, match="cancelled, nothing was edited"):
        await command
    assert editor.applied == []
    await until(lambda: "stopped" in [event["event"] for event in daemon.log])
    assert "done" not in [event["event"] for event in daemon.log]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "not none"),
        ({"pattern": "f($A)", "recipe": "logging"}, "not pattern and recipe"),
        ({"recipe": "tea"}, "unknown recipe 'tea'"),
        ({"pattern": "f(", "template": "g", "language": "python"}, "does not parse|is not python"),
        ({"pattern": "f($A)", "template": "g($B)", "language": "python"}, "which nothing binds"),
        ({"pattern": "f($A)", "template": "g", "language": "klingon"}, "unknown language 'klingon'"),
    ],
)
async def test_a_bad_refactor_is_refused_with_a_reason(
    editor: Editor, tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    project(tmp_path)
    await editor.initialize(folder=tmp_path)
    with pytest.raises(Exception, match=said):
        await editor.command("lacuna.refactor", arguments)


async def test_without_a_folder_the_open_documents_are_searched(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["30"])
    await editor.initialize()
    editor.open("get(1)\n", name="page.tsx", language="typescriptreact")
    editor.open("get(1)\n", name="notes.md", language="markdown")
    editor.open("get(2)\n")
    await editor.command("lacuna.refactor", TEMPLATE)
    assert editor.edited() == "get(2, timeout=30)\n"
    await editor.command("lacuna.refactor", TEMPLATE | {"language": "typescriptreact"})
    assert set(documents(editor.applied[-1].edit)) == {"page.tsx"}
