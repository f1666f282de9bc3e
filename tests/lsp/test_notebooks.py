import pytest
from lsprotocol import types
from tests.lsp.editor import Editor
from tests.lsp.service import Daemon

CODE, TEXT = types.NotebookCellKind.Code, types.NotebookCellKind.Markup
NOTEBOOK = "file:///work/book.ipynb"


def cell(number: int) -> str:
    return f"vscode-notebook-cell:/work/book.ipynb#{number}"


def item(number: int, text: str) -> types.TextDocumentItem:
    return types.TextDocumentItem(cell(number), "python", 1, text)


def open_notebook(editor: Editor, *texts: str) -> None:
    cells = [types.NotebookCell(CODE, cell(number)) for number in range(len(texts))]
    cells.insert(1, types.NotebookCell(TEXT, cell(99)))
    notebook = types.NotebookDocument(NOTEBOOK, "jupyter-notebook", 1, cells)
    items = [item(number, text) for number, text in enumerate(texts)] + [item(99, "# Title")]
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))


def change_cells(editor: Editor, change: types.NotebookDocumentCellChanges) -> None:
    identifier = types.VersionedNotebookDocumentIdentifier(2, NOTEBOOK)
    editor.client.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(identifier, types.NotebookDocumentChangeEvent(cells=change))
    )


async def test_the_cells_above_are_sent_as_context(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize({"debounce": False})
    open_notebook(editor, "import a", "b = 2", "c = ", "d = 4")
    editor.uri, editor.before = cell(2), "c = "
    assert await editor.suggest() == ["filled"]
    (request,) = daemon.requests
    assert request["text"] == "c = "
    assert [snippet["text"] for snippet in request["snippets"]] == ["import a", "b = 2"]
    assert request["snippets"][0]["reason"] == "a cell above"
    assert {snippet["path"] for snippet in request["snippets"]} == {"book.ipynb"}


async def test_added_removed_and_edited_cells_change_the_context(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize({"debounce": False})
    open_notebook(editor, "import a", "b = 2", "c = ")
    array = types.NotebookCellArrayChange(0, 1, [types.NotebookCell(CODE, cell(7))])
    structure = types.NotebookDocumentCellChangeStructure(
        array, did_open=[item(7, "new = 7")], did_close=[types.TextDocumentIdentifier(cell(0))]
    )
    typed = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, cell(1)), [types.TextDocumentContentChangeWholeDocument("b = 3")]
    )
    change_cells(editor, types.NotebookDocumentCellChanges(structure=structure, text_content=[typed]))
    editor.uri, editor.before = cell(2), "c = "
    await editor.suggest()
    assert [snippet["text"] for snippet in daemon.requests[0]["snippets"]] == ["new = 7", "b = 3"]


async def test_a_saved_cell_has_no_change_to_follow_until_it_is_edited_again(editor: Editor) -> None:
    result = await editor.initialize()
    sync = result.capabilities.notebook_document_sync
    assert isinstance(sync, types.NotebookDocumentSyncOptions)
    assert sync.save
    open_notebook(editor, "old(1)\nold(2)\n")
    wanted = {"textDocument": {"uri": cell(0)}, "position": {"line": 0, "character": 0}, "scope": "file"}
    for number in (2, 3):
        typed = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(number, cell(0)),
            [types.TextDocumentContentChangeWholeDocument(f"new{number}(1)\nold(2)\n")],
        )
        change_cells(editor, types.NotebookDocumentCellChanges(text_content=[typed]))
        await editor.command("lacuna.propagate", wanted)
        saved = types.DidSaveNotebookDocumentParams(types.NotebookDocumentIdentifier(NOTEBOOK))
        editor.client.notebook_document_did_save(saved)
        with pytest.raises(Exception, match="nothing has been changed in this file since it was saved"):
            await editor.command("lacuna.propagate", wanted)


async def test_closing_a_notebook_closes_its_cells(editor: Editor) -> None:
    await editor.initialize({"debounce": False})
    open_notebook(editor, "a = 1", "b = ")
    cells = [types.TextDocumentIdentifier(cell(number)) for number in (0, 1, 99)]
    editor.client.notebook_document_did_close(
        types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(NOTEBOOK), cells)
    )
    editor.uri, editor.before = cell(1), "b = "
    with pytest.raises(Exception, match="is not open"):
        await editor.suggest()
