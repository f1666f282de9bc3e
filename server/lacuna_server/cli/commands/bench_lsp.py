"""``lacuna bench lsp``: runs the language server's benchmark as a process, because this package may not import it."""

import subprocess
import sys

import typer

# All options, --help too, are passed on to that process.
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def bench_lsp(context: typer.Context) -> None:
    """Time the language server from keystroke to answer, and replay the typing of whole files (see lsp --help)."""
    raise typer.Exit(
        subprocess.run([sys.executable, "-I", "-m", "lacuna_lsp.bench", *context.args], check=False).returncode
    )


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("lsp", context_settings=SETTINGS)(bench_lsp)
