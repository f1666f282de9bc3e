"""Notebooks: each cell is a document of its own, and the code cells above it are its context."""

from collections.abc import Callable, Sequence

from lsprotocol import types

from lacuna_lsp.documents.document import ClientDocument
from lacuna_model.core.params import Snippet


class Notebooks:
    """The order of the code cells of every open notebook."""

    def __init__(self) -> None:
        self._cells: dict[str, list[types.NotebookCell]] = {}

    def open(self, notebook: types.NotebookDocument) -> None:
        """Stores a notebook with its cells in order."""
        self._cells[notebook.uri] = list(notebook.cells)

    def change(self, uri: str, change: types.NotebookCellArrayChange) -> None:
        """Applies a change of the list of cells: inserted, deleted or moved cells."""
        cells = self._cells.get(uri, [])
        cells[change.start : change.start + change.delete_count] = change.cells or []

    def close(self, uri: str) -> None:
        """Removes a closed notebook."""
        self._cells.pop(uri, None)

    def above(self, cell: str, find: Callable[[str], ClientDocument | None]) -> tuple[Snippet, ...]:
        """Returns the code cells above a cell, in order, or none for a document that is no cell."""
        for cells in self._cells.values():
            uris = [other.document for other in cells]
            if cell in uris:
                code = [other for other in cells[: uris.index(cell)] if other.kind == types.NotebookCellKind.Code]
                return tuple(_snippets(code, find))
        return ()


def _snippets(cells: Sequence[types.NotebookCell], find: Callable[[str], ClientDocument | None]) -> list[Snippet]:
    found = [find(cell.document) for cell in cells]
    # The model gets the notebook's name without the cell id that editors append after "#".
    return [
        Snippet(document.path.partition("#")[0], document.text.decode(), reason="a cell above")
        for document in found
        if document is not None
    ]
