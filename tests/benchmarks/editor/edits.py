"""Makes the first change of real commits in a real language server, and asks what follows.

Each case is asked for in two ways: all places at once (``lacuna.propagate``), and one at a time
(``textDocument/copilotInlineEdit``, again after each accepted edit).
"""

import functools
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcMethodNotFound
from pygls.lsp.client import LanguageClient
from tests.benchmarks.editor.typist import COMMAND, Typist
from tests.benchmarks.edits.dataset import EditCase
from tests.benchmarks.edits.judging import Verdict, judge
from tests.benchmarks.edits.scores import Answered

from lacuna_lsp.documents.document import ClientDocument

ALL_AT_ONCE, ONE_BY_ONE = "all at once", "one by one"
WAYS = (ALL_AT_ONCE, ONE_BY_ONE)
MAX_OFFERS = 60
NOWHERE = "http://127.0.0.1:9"  # nothing answers there: the rules have to do without a model


class Committer:
    """An editor's side of one language server: opens a case, makes its first change and asks for the others."""

    def __init__(self, client: LanguageClient) -> None:
        self._client = client
        self._applied: list[types.ApplyWorkspaceEditParams] = []
        self._opened = 0
        client.feature(types.WORKSPACE_APPLY_EDIT)(functools.partial(self._apply))

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self._applied.append(params)
        return types.ApplyWorkspaceEditResult(applied=True)

    async def answer(self, case: EditCase, way: str) -> Answered:
        """Returns the verdict on what is offered after a case's first change."""
        mine = self._open(case)
        first = case.edits[case.first]
        new = "".join(case.after_first[first.start : first.start + len(first.new)])
        span = types.Range(types.Position(first.start, 0), types.Position(first.end, 0))
        self._change(mine, span, new)
        began = time.perf_counter()
        if way == ALL_AT_ONCE:
            ms = await self._all_at_once(mine, first.start, began)
        else:
            ms = await self._one_by_one(mine, first.start + max(len(first.new) - 1, 0), began, case)
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(mine.uri)))
        verdict = judge(case, mine.text.decode().splitlines(keepends=True))
        return Answered(way, case.id, case.kind, case.language, verdict, round(ms, 1))

    def _open(self, case: EditCase) -> ClientDocument:
        self._opened += 1
        uri = f"file:///bench/{self._opened}/{case.path}"
        item = types.TextDocumentItem(uri, case.language, 1, case.before)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return ClientDocument(uri, case.before, 1, case.language, "utf-16")

    def _change(self, mine: ClientDocument, span: types.Range, text: str) -> None:
        change = types.TextDocumentContentChangePartial(span, text)
        identifier = types.VersionedTextDocumentIdentifier(mine.version + 1, mine.uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        mine.apply([change], mine.version + 1)

    async def _all_at_once(self, mine: ClientDocument, row: int, began: float) -> float:
        self._applied.clear()
        argument = {
            "textDocument": {"uri": mine.uri},
            "position": {"line": row, "character": 0},
            "scope": "file",
        }
        try:
            await self._client.workspace_execute_command_async(
                types.ExecuteCommandParams("lacuna.propagate", arguments=[argument])
            )
        except JsonRpcException as error:  # there is no rule, which counts as no offer
            if error.code == JsonRpcInternalError.CODE:
                raise
            return (time.perf_counter() - began) * 1e3
        ms = (time.perf_counter() - began) * 1e3
        edits = [edit for params in self._applied for edit in _text_edits(params)]
        for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
            mine.apply([types.TextDocumentContentChangePartial(edit.range, edit.new_text)], mine.version)
        return ms

    async def _one_by_one(self, mine: ClientDocument, row: int, began: float, case: EditCase) -> float:
        """Accepts offers until there is none, or one is wrong; returns the milliseconds to the first answer."""
        ms, wrong = 0.0, 0
        at = types.Position(row, len(mine.line(row).decode()))
        for _ in range(MAX_OFFERS):
            params = {
                "textDocument": {"uri": mine.uri, "version": mine.version},
                "position": {"line": at.line, "character": at.character},
            }
            answer: Any = await self._client.protocol.send_request_async("textDocument/copilotInlineEdit", params)
            ms = ms or (time.perf_counter() - began) * 1e3
            edits = _get(answer, "edits") or []
            if not edits or wrong:
                break
            span, text = _range(_get(edits[0], "range")), _get(edits[0], "text")
            self._change(mine, span, text)
            wrong = judge(case, mine.text.decode().splitlines(keepends=True)).wrong
            last = text.split("\n")[-1]
            at = types.Position(span.start.line + text.count("\n"), len(last))
            if (command := _get(edits[0], "command")) is not None:
                await self._client.workspace_execute_command_async(
                    types.ExecuteCommandParams(_get(command, "command"), arguments=list(_get(command, "arguments")))
                )
        return ms


def _text_edits(params: types.ApplyWorkspaceEditParams) -> list[types.TextEdit]:
    found: list[types.TextEdit] = []
    for change in params.edit.document_changes or ():
        if isinstance(change, types.TextDocumentEdit):
            found += [edit for edit in change.edits if isinstance(edit, types.TextEdit)]
    for edits in (params.edit.changes or {}).values():
        found += edits
    return found


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _range(span: Any) -> types.Range:
    start, end = _get(span, "start"), _get(span, "end")
    return types.Range(
        types.Position(_get(start, "line"), _get(start, "character")),
        types.Position(_get(end, "line"), _get(end, "character")),
    )


def _ignore(params: object) -> None:
    """Takes a message that is for people."""


@asynccontextmanager
async def committer(*arguments: str) -> AsyncIterator[Committer]:
    """Starts ``lacuna-lsp`` with more ``arguments``; without any it waits for the engine."""
    client = LanguageClient("lacuna-evaluate", "1")
    await client.start_io(sys.executable, *COMMAND, *arguments)
    workspace = types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
    )
    options = {"automatic": True, "readAhead": False}
    params = types.InitializeParams(
        capabilities=types.ClientCapabilities(workspace=workspace),
        process_id=os.getpid(),
        initialization_options=options,
    )
    client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(_agree)
    client.feature(types.WINDOW_SHOW_MESSAGE)(_ignore)
    await client.initialize_async(params)
    client.initialized(types.InitializedParams())
    try:
        if not arguments:
            await Typist(client).ready()
        yield Committer(client)
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]


def _agree(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
    return next(iter(params.actions or ()), None)


async def measure(
    cases: Sequence[EditCase], ways: Sequence[str], advance: Callable[[str], None], *arguments: str
) -> list[Answered]:
    """Returns the verdicts on all cases in each way, from one language server; ``advance`` gets every way's name."""
    found = []
    async with committer(*arguments) as one:
        for way in ways:
            for case in cases:
                try:
                    found.append(await one.answer(case, way))
                except JsonRpcMethodNotFound:  # a server that cannot offer one edit at a time
                    nothing = Verdict(len(case.expected), 0, 0, 0, 0)
                    found.append(Answered(way, case.id, case.kind, case.language, nothing, 0.0))
            advance(way)
    return found
