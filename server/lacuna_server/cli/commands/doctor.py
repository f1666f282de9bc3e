"""``lacuna doctor``: reports what is installed, the device, what is wrong and how to repair it."""

import typer

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption

FAILED = 1
STYLES = {"ok": "green", "warn": "magenta", "fail": "bold red"}


def doctor(json_output: JsonOption = False) -> None:
    """Check the installation, and print one line per check; exit with 1 if a check fails."""
    from rich.console import Console
    from rich.text import Text

    from lacuna_server.cli.checks import run_all

    console = Console()
    with Console(stderr=True).status("checking"):
        checks = run_all()
    if json_output:
        output.print_json({"checks": checks})
    else:
        for check in checks:
            line = Text.assemble((f"{check.state:<5}", STYLES[check.state]), f"{check.name:<10} {check.detail}")
            if check.mend:
                line.append(f"; {check.mend}", style="italic")
            console.print(line, soft_wrap=True)
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(FAILED)


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command()(doctor)
