"""``lacuna edit``: rewrites lines of a file as an instruction says."""

from typing import Annotated

import msgspec
import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.params import MORE_TOKENS, DecodeOptions, EditLines, Region
from lacuna_model.hub import models
from lacuna_server import files
from lacuna_server.cli import engines, options, terminal
from lacuna_server.cli.fill import FAILED, conclude, requested, run
from lacuna_server.cli.terminal import is_answered, pressed


def edit(
    file: options.FileArgument,
    lines: Annotated[
        str, typer.Option("--lines", metavar="A:B", help="Rewrite lines A to B, counted from 1; A alone is one line.")
    ],
    instruction: Annotated[
        str, typer.Option("--instruction", "-m", metavar="TEXT", help="What to change, in a sentence.")
    ],
    write: Annotated[bool, typer.Option("--write", help="Write the result to FILE atomically.")] = False,
    show_refused: Annotated[
        bool,
        typer.Option("--show-refused", help="Where the new text is refused, print what the model wrote as a diff."),
    ] = False,
    json_output: JsonOption = False,
    watch: options.WatchOption = False,
    more_tokens: Annotated[
        int,
        typer.Option(
            "--more-tokens", min=1, max=2048, help="Let the new text have so many tokens more than the old one."
        ),
    ] = MORE_TOKENS,
    model: options.ServedModelOption = None,
    service: options.ServiceOption = None,
    deadline_ms: options.DeadlineOption = 0,
    no_syntax: options.NoSyntaxOption = False,
    language: options.LanguageOption = "",
    workspace: options.WorkspaceOption = None,
    no_workspace: options.NoWorkspaceOption = False,
) -> None:
    """Rewrite lines A to B of FILE as the instruction says, and print the diff; nothing outside these lines changes.

    The file changes only with --write. The old text is the draft: lines that stay cost little time. A new text that
    breaks the file is refused; where it may lose something that nobody asked to change, a line beside the diff says so,
    and --write asks first, or writes nothing where no person is.
    """
    task = EditLines.by(instruction)
    document = files.read(file)
    start, end = files.lines_at(document, lines)
    region = Region(start, end, max_tokens=more_tokens)
    decoding = DecodeOptions(deadline_ms=deadline_ms, syntax=not no_syntax)
    request = requested(document, [region], task, decoding, language, workspace, no_workspace)
    with engines.opened(model, service) as (engine, name):
        result = run(engine, document, request, watch=watch)
    text = request.filled(result.fills)
    changed = result.status == "ok" and text != document.text
    if json_output:
        output.print_json(terminal.report(request, result, file, name))
    elif changed:
        terminal.print_diff(document, text)
    elif show_refused and any(result.refused):
        terminal.print_diff(document, request.filled(result.refused))
    if write and changed:
        if result.warning and (json_output or not _is_wanted(result.warning)):
            output.say(f"not written, since {result.warning}")
            raise typer.Exit(FAILED)
        files.write(document, text)
        result = msgspec.structs.replace(result, warnings=())  # the question named them
    larger = f", or use a larger model (--model {models.LARGE_MODEL})" if name == models.SMALL_MODEL else ""
    advice = [f"nothing was changed; say exactly what should stand there, name fewer lines{larger}"]
    if any(result.refused):
        advice.append(
            "the diff shows what was refused" if show_refused else "--show-refused prints what the model wrote"
        )
    conclude(result, advice, failures=("no_valid_fill", "deadline"))


def _is_wanted(warning: str) -> bool:
    """Whether a text with a warning is written: a person on a terminal is asked, who has seen the diff."""
    return is_answered() and pressed(f"look at the diff: {warning}. Write it? [y, n] ") == "y"
