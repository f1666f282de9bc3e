"""Chooses snippets of other files on this machine, for an engine that cannot read the client's folders."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lacuna_model.core.context import WindowOptions
from lacuna_model.core.params import Diagnostic, Snippet
from lacuna_model.snippets.format import PieceCounter

if TYPE_CHECKING:
    from lacuna_model.snippets.chooser import SnippetChooser

BUDGET = WindowOptions().snippets


class ClientWorkspaces:
    """The client's folders, each read from the first document on that is open in it.

    A thread does the work, in order, so that no keystroke waits for it.
    """

    def __init__(self) -> None:
        self._choosers: dict[str, SnippetChooser] = {}
        self._pieces = PieceCounter()
        self._working = ThreadPoolExecutor(1, "lacuna-workspaces")

    def begin(self, folder: str) -> None:
        """Reads a folder from now on."""
        if folder:
            self._working.submit(self._chooser, folder)

    async def choose(
        self,
        folder: str,
        path: str,
        language: str,
        text: str,
        at: int,
        diagnostics: Sequence[Diagnostic],
        signatures: Sequence[Snippet] = (),
    ) -> tuple[Snippet, ...]:
        """Returns the snippets for a cursor at an offset (bytes) of a document, as far as the folder has been read."""
        if not folder:
            return ()

        def chosen() -> tuple[Snippet, ...]:
            return self._chooser(folder).choose(
                text,
                at,
                path,
                language,
                diagnostics=diagnostics,
                signatures=signatures,
                tokenizer=self._pieces,
                budget=BUDGET,
            )

        return await asyncio.get_running_loop().run_in_executor(self._working, chosen)

    def close(self) -> None:
        """Stops the reading, without waiting for it."""
        self._working.submit(self._close)
        self._working.shutdown(wait=False)

    def _chooser(self, folder: str) -> "SnippetChooser":
        from lacuna_model.snippets.chooser import SnippetChooser  # takes a while, and few engines are remote

        if folder not in self._choosers:
            self._choosers[folder] = SnippetChooser(Path(folder))
            self._choosers[folder].start()
        return self._choosers[folder]

    def _close(self) -> None:
        for chooser in self._choosers.values():
            chooser.close()
