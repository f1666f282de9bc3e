"""``lacuna bench lsp``: the language server's own benchmark, run as a process because the server imports no lsp."""

import subprocess
import sys

import typer

# Its options are its own, --help among them.
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def bench_lsp(context: typer.Context) -> None:
    """Time the language server from keystroke to answer, and replay the typing of whole files (see lsp --help)."""
    raise typer.Exit(
        subprocess.run([sys.executable, "-I", "-m", "lacuna_lsp.bench", *context.args], check=False).returncode
    )


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("lsp", context_settings=SETTINGS)(bench_lsp)
