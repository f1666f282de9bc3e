"""``lacuna context``: shows the snippets of other files that the model would read, and why."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.context import WindowOptions
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import ChooseSnippets, InfillRequest, Region, Snippet
from lacuna_model.files.opening import find_root
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.snippets.defined import beside
from lacuna_model.snippets.format import PieceCounter
from lacuna_server import files
from lacuna_server.cli import engines, options

DEFAULT_BUDGET = WindowOptions().snippets  # as much as a fill reads


def context(
    file: options.FileArgument,
    at: options.AtOption,
    workspace: options.WorkspaceOption = None,
    budget: Annotated[
        int, typer.Option("--budget", min=1, max=4096, help="Limit the snippets to this many tokens in total.")
    ] = DEFAULT_BUDGET,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the text of FILE from stdin, such as an editor's unsaved text.")
    ] = False,
    json_output: JsonOption = False,
    model: options.ServedModelOption = None,
    service: options.ServiceOption = None,
    language: options.LanguageOption = "",
) -> None:
    """Show the snippets of other files that the model would read for a fill at LINE:COL of FILE, and why."""
    document = files.read(file) if not stdin else files.read_stdin(file)
    offset = files.offset_at(document, at)
    path = file.resolve()
    root = workspace.resolve() if workspace else find_root(path)
    if root is None:
        root = path.parent
        chosen = beside(path, document.text, offset, language, tokenizer=PieceCounter(), budget=budget)
        why = "" if chosen else f"{file} is in no project, and names no file beside it"
    elif not path.is_relative_to(root):
        raise RequestError(f"{file} is not inside the workspace {root}")
    else:
        request = InfillRequest(
            document.text,
            (Region(offset, offset),),
            ChooseSnippets(budget),
            path=str(path),
            language=language,
            workspace=str(root),
        )
        with engines.served(model, service) as running:
            if running is not None:
                result = running[0].fill(request)
                chosen, why = result.snippets, result.message
            else:
                chosen, why = choose(request, budget, model or DEFAULT_MODEL)
    tokens = sum(one.tokens for one in chosen)
    if json_output:
        told = {"workspace": str(root), "budget": budget, "tokens": tokens, "snippets": chosen, "message": why}
        output.print_json(told)
    elif why:
        output.say(why)
    else:
        from lacuna_server.cli.live import printable

        for one in chosen:  # in the order in which they are read
            about = f"{one.path}  score {one.score:.2f}, {one.tokens} tokens\n{one.reason}"
            output.print_exact(f"{printable(about)}\n\n{printable(one.text)}\n")
        output.print_exact(f"{tokens} of {budget} tokens, from {root}\n")


def choose(request: InfillRequest, budget: int, model: str) -> tuple[tuple[Snippet, ...], str]:
    """Chooses the snippets in this process; returns them, and the reason if there are none."""
    models.weights(model)  # the cheap check first: the rest takes seconds
    from rich.console import Console

    with Console(stderr=True).status(f"reading {request.workspace}"):
        from lacuna_model.readers import load_tokenizer
        from lacuna_model.snippets.chooser import SnippetChooser

        tokenizer = load_tokenizer(model)
        chooser = SnippetChooser(Path(request.workspace))
        chooser.refresh()
        at = request.regions[0].start
        chosen = chooser.choose(request.text, at, request.path, request.language, tokenizer=tokenizer, budget=budget)
        return chosen, "" if chosen else chooser.why_none(request.path)
