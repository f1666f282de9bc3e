"""The command ``next-edits``: makes the first change of real commits in a real language server, asks what follows.

Each case is asked for in two ways: all places at once (``lacuna.propagate``), and one at a time
(``textDocument/copilotInlineEdit``, again after each accepted edit).
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.client import LanguageClient
from tests.benchmarks.editor.typist import language_server
from tests.benchmarks.edits.dataset import EditCase, load_edit_cases
from tests.benchmarks.edits.judging import Answered, judge, rows
from tests.benchmarks.figures import show
from tests.benchmarks.records import Records
from tests.benchmarks.service import runtime_folder, service

from lacuna_lsp.document import ClientDocument
from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.text.lines import lines_of
from training.options import ModelOption

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

        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self._applied.append(params)
            return types.ApplyWorkspaceEditResult(applied=True)

        client.feature(types.WORKSPACE_APPLY_EDIT)(apply)

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
        verdict = judge(case, lines_of(mine.text.decode(), keepends=True))
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
            wrong = judge(case, lines_of(mine.text.decode(), keepends=True)).wrong
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
    return found


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _range(span: Any) -> types.Range:
    start, end = _get(span, "start"), _get(span, "end")
    return types.Range(
        types.Position(_get(start, "line"), _get(start, "character")),
        types.Position(_get(end, "line"), _get(end, "character")),
    )


async def measure(
    cases: Sequence[EditCase], ways: Sequence[str], records: Records[Answered], *arguments: str
) -> list[Answered]:
    """The verdicts on all cases in each way, from one language server with more ``arguments``.

    Without any it waits for the engine.
    """
    options = {"automatic": True, "readAhead": False}
    with output.counting("commits", len(cases) * len(ways)) as advance:
        async with language_server(options, *arguments, wait=not arguments) as client:
            one = Committer(client)
            for way in ways:
                for case in cases:
                    records.add(await one.answer(case, way))
                    advance()
    return records.found


def next_edits(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The commits, such as edits_dev.jsonl.gz.")],
    limit: Annotated[int, typer.Option(min=0, help="Use at most this many commits; 0: all.")] = 0,
    kind: Annotated[Literal["", "repeat", "near"], typer.Option(help="Use commits of this kind alone.")] = "",
    way: Annotated[
        Literal["", "all at once", "one by one"], typer.Option(help="Ask in this way only; by default, in both.")
    ] = "",
    without_model: Annotated[
        bool, typer.Option("--without-model", help="Let no model run, so that the rules alone offer edits.")
    ] = False,
    records: Annotated[
        Path | None, typer.Option("--records", help="Write the verdict of every commit to this JSONL file.")
    ] = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Make the first change of commits in a real language server, and count which of their other changes it offers.

    It is asked for all places at once (`lacuna.propagate`), and for one place after another.
    """
    cases = load_edit_cases(file, limit, kind)
    ways = [way] if way else WAYS

    async def run(written: Records[Answered]) -> list[Answered]:
        if without_model:
            return await measure(cases, ways, written, "--engine", NOWHERE)
        async with service(model):
            return await measure(cases, ways, written)

    with runtime_folder(), Records(records, Answered, anew=True) as written:
        show(rows(asyncio.run(run(written))), json_output)
