"""What agents can do: fill gaps, edit by an instruction, refactor, and ask why a text is refused.

Every tool shows a diff. A file is written only if the call says ``apply``, if it has not changed meanwhile, and if
the new text has no warning.
Line numbers that have moved are refused (:mod:`.places`).
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import Field

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MORE_TOKENS, EditLines, FillGaps, InfillRequest, InfillResult, Region, Task
from lacuna_model.languages.registry import require_language
from lacuna_model.text import diff
from lacuna_model.text.lines import newline_of
from lacuna_server import files
from lacuna_server.agents.folders import Folders, Places, added_errors, version_of
from lacuna_server.files import FileText
from lacuna_server.refactor import journal
from lacuna_server.refactor.fill import FileFill, fill_files
from lacuna_server.refactor.places.gather import gather
from lacuna_server.refactor.plan import Plan
from lacuna_server.refactor.plan import apply as write_plan
from lacuna_server.refactor.rewriting.refactoring import by_instruction, by_structure, places

FILL_TOKENS = 192
# Plans that wait to be applied; older ones are forgotten.
PLANS_KEPT = 16
LINE_ENDS = ("\n", "\r")
PathText = Annotated[str, Field(description="A file, relative to the server's first folder or absolute.")]
Lines = Annotated[str, Field(description="Whole lines A:B, counted from 1.")]
Version = Annotated[
    str, Field(description="The version of the file that the numbers belong to, from an earlier answer.")
]
Apply = Annotated[bool, Field(description="Write the file. Without it, nothing is written.")]


class Outcome(msgspec.Struct, frozen=True):
    """What a tool did: ``status``, a ``diff``, the reason in ``message``, and the ``written`` files.

    The message of a change says what to look at in the diff. The status is ``changed``, ``unchanged`` or ``refused``.
    ``plan`` names the plan of a previewed refactor, and ``version`` that of the file that a tool was asked about,
    as it is after the call.
    """

    status: str
    diff: str = ""
    message: str = ""
    written: tuple[str, ...] = ()
    plan: str = ""
    version: str = ""


class Tools:
    """The tools of one server, with signatures and docstrings as agents see them; ``fill`` answers requests.

    With ``workspace`` the other files of the folder are read as context. Each raises RequestError for wrong arguments,
    and where lines have moved or are others.
    """

    def __init__(
        self, folders: Folders, fill: Callable[[InfillRequest], InfillResult], *, workspace: bool = True
    ) -> None:
        self._folders = folders
        self._fill = fill
        self._workspace = workspace
        self._places = Places()
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._numbers = itertools.count(1)

    @property
    def all(self) -> tuple[Callable[..., Outcome], ...]:
        """Every tool."""
        return self.fill_gaps, self.edit, self.refactor_preview, self.refactor_apply, self.syntax_errors

    def fill_gaps(
        self,
        path: PathText,
        at: Annotated[str, Field(description="A position LINE:COL (line from 1, column from 0).")] = "",
        version: Version = "",
        *,
        apply: Apply = False,
    ) -> Outcome:
        """Fill the gap at a position, or without one all <<fill>> markers of a file; the syntax stays valid."""
        document = self._folders.read(path)
        if at:
            regions = [files.gap_at(document, self._places.offset(document, at, version), FILL_TOKENS)]
        else:
            regions = files.marked(document, FILL_TOKENS)
        return self._changed(document, regions, FillGaps(), apply=apply)

    def edit(
        self,
        path: PathText,
        instruction: str,
        lines: Lines = "",
        old_text: Annotated[
            str,
            Field(description="The whole lines as they are. With it, lines may be left out; other lines are refused."),
        ] = "",
        version: Version = "",
        *,
        apply: Apply = False,
    ) -> Outcome:
        """Rewrite lines of a file as an instruction says, such as "add a docstring". Nothing else changes.

        After an edit that adds or removes lines, name the lines' text or the version: numbers that moved are refused.
        """
        document, task = self._folders.read(path), EditLines.by(instruction)
        start, end = self._places.lines(document, lines, version, old_text)
        region = Region(start, end, max_tokens=MORE_TOKENS)
        return self._changed(document, [region], task, apply=apply)

    def refactor_preview(
        self,
        pattern: Annotated[str, Field(description="Code to find, with $NAME and $$$NAMES as metavariables.")],
        template: Annotated[str, Field(description="The new code; the model fills each <<fill>>.")] = "",
        instruction: Annotated[str, Field(description="Instead of a template: what to change in these lines.")] = "",
        paths: Annotated[list[str] | None, Field(description="Files and folders; by default, all.")] = None,
        language: str = "",
    ) -> Outcome:
        """Rewrite all places of a pattern, and show the diff. The answer names the plan for refactor_apply."""
        if bool(template) == bool(instruction.strip()):
            raise RequestError("a refactor takes a template or an instruction, one of the two")
        known = require_language(language).name if language else ""
        found = by_structure(pattern, template or files.MARKER, known)
        if not template:
            found = by_instruction(found, instruction)
        sources, unread = gather(
            self._folders.places(paths or ()), found.languages, trusting=False, roots=self._folders.roots
        )
        chosen, left_out = places(found, sources)
        fills = [FileFill(source, rewrites) for source, rewrites in chosen]
        fill_files(fills, self._fill, lambda count: None)
        plan = Plan(found.title, tuple(fill.edits() for fill in fills), (*unread, *left_out))
        edits = ((file, edit) for file in plan.files for edit in file.edits if edit.message)
        message = "; ".join([*(f"{file.path}: {edit.label}: {edit.message}" for file, edit in edits), *plan.left_out])
        if not plan.num_ready:
            return Outcome("unchanged", message=message or "no place matches")
        name = f"plan-{next(self._numbers)}"
        self._plans[name] = plan
        while len(self._plans) > PLANS_KEPT:
            self._plans.popitem(last=False)
        return Outcome("changed", _diff_of(plan), message, plan=name)

    def refactor_apply(self, plan: Annotated[str, Field(description="From refactor_preview.")]) -> Outcome:
        """Write a previewed refactor: all its files, or none if one has changed meanwhile."""
        if plan not in self._plans:
            raise RequestError(f"there is no plan {plan!r}; preview the refactor first")
        found = self._plans[plan]
        for file in found.ready.files:
            self._folders.file(file.path)  # a link may have been put in its place since
        journal.recover()
        written = write_plan(found)
        del self._plans[plan]
        return Outcome("changed", message=found.title, written=tuple(written))

    def syntax_errors(self, path: PathText, lines: Lines, text: str, version: Version = "") -> Outcome:
        """Say which syntax errors a text would add in place of these lines."""
        document = self._folders.read(path)
        start, end = self._places.lines(document, lines, version)
        replaced = document.text.encode()[start:end].decode()
        if text and replaced.endswith(LINE_ENDS) and not text.endswith(LINE_ENDS):
            text += newline_of(document.text)
        errors = added_errors(document, start, end, text)
        now = version_of(document.text)
        if not errors:
            return Outcome("unchanged", message="the file has no new syntax error with this text", version=now)
        return Outcome("refused", message="\n".join(errors), version=now)

    def _changed(self, document: FileText, regions: Sequence[Region], task: Task, *, apply: bool) -> Outcome:
        """Fill the regions of a document, and write it if asked to."""
        root = next(root for root in self._folders.roots if document.path.is_relative_to(root))
        workspace = str(root) if self._workspace else ""
        request = InfillRequest(document.text, tuple(regions), task, path=str(document.path), workspace=workspace)
        result = self._fill(request)
        now = version_of(document.text)
        if result.status != "ok":
            return Outcome("refused", message=result.message or "no valid fill was found", version=now)
        fills = files.adapted(document, request, result.fills)
        text = request.filled(fills)
        if text == document.text:
            return Outcome("unchanged", message=result.message or "nothing to change", version=now)
        is_written = apply and not result.warning
        if is_written:
            files.write(document, text)
        message = f"not written; look at the diff: {result.warning}" if result.warning else result.message
        written = (str(document.path),) if is_written else ()
        shown = _diff(document.path, document.text, text)
        return Outcome("changed", shown, message, written, version=version_of(text) if is_written else now)


def _diff_of(plan: Plan) -> str:
    diffs = []
    for file in plan.ready.files:
        before = Path(file.path).read_bytes()
        file.check(before)
        diffs.append(_diff(Path(file.path), before.decode(), file.rewritten(before).decode()))
    return "\n".join(diffs)


def _diff(path: Path, before: str, after: str) -> str:
    return diff.unified(before, after, str(path), context=2)
