from pathlib import Path

import pytest
from lsprotocol import types

from .editor import Editor


async def test_a_change_is_propagated_to_all_files_after_a_preview(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("show('c')\n")
    await editor.initialize(folder=tmp_path)
    editor.open("show¦('a')\nshow('b')\n", uri=(tmp_path / "here.py").as_uri())
    editor.delete(len("show"))
    editor.type("log.info")
    place = {"line": 0, "character": 3}
    answer = await editor.do("propagate", position=place)
    assert (answer["status"], answer["edits"]) == ("applied", 2)
    assert "Make the change everywhere" in [seen[0].title for seen in editor.progress]
    (applied,) = editor.applied
    edit = applied.edit
    assert edit.document_changes is not None
    texts = {
        change.text_document.uri: [one.new_text for one in change.edits]  # type: ignore[union-attr]
        for change in edit.document_changes
    }
    assert texts == {
        (tmp_path / "here.py").as_uri(): ["log.info"],
        (tmp_path / "other.py").as_uri(): ["log.info"],
    }
    versions = {change.text_document.version for change in edit.document_changes}  # type: ignore[union-attr]
    assert versions == {editor.version, None}
    assert edit.change_annotations is not None
    assert all(annotation.needs_confirmation for annotation in edit.change_annotations.values())
    assert applied.metadata is not None
    assert applied.metadata.is_refactoring
    # The server does not write the files. The editor applies the edits.
    assert (tmp_path / "other.py").read_text() == "show('c')\n"


async def change_two_names(editor: Editor) -> None:
    """Rename a function where it is called first, and then another one further below."""
    await editor.begin("load_page¦(a)\nload_page(b)\n\n\n\nmake_item(c)\nmake_item(d)\n")
    editor.delete(len("load_page"))
    editor.type("fetch_page")
    head, name, tail = editor.text.partition("make_item")
    editor.before, editor.after = head + name, tail
    editor.delete(len("make_item"))
    editor.type("build_item")


async def test_the_change_nearest_to_the_position_is_propagated(editor: Editor) -> None:
    await change_two_names(editor)
    propagated = []
    for line in (0, 6):
        await editor.do("propagate", position={"line": line, "character": 0}, scope="file")
        propagated.append([line for line in editor.edited().splitlines() if line])
    assert propagated == [
        ["fetch_page(a)", "fetch_page(b)", "build_item(c)", "make_item(d)"],
        ["fetch_page(a)", "load_page(b)", "build_item(c)", "build_item(d)"],
    ]


async def test_saving_discards_the_recorded_changes(editor: Editor) -> None:
    await editor.begin("f(a¦)\nf(b)\n")
    editor.type(", 1")
    identifier = types.TextDocumentIdentifier(editor.uri)
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(identifier))
    with pytest.raises(Exception, match="nothing has been changed in this file since it was saved"):
        await editor.do("propagate", position={"line": 0, "character": 0})
