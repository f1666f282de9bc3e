"""``lacuna bench lsp`` and ``typing``: run the language server's benchmarks, which this package may not import."""

import subprocess
import sys

import typer

# All options, --help too, are passed on to that process.
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def bench_lsp(context: typer.Context) -> None:
    """Time the language server from keystroke to answer, and replay the typing of whole files (see lsp --help)."""
    _run("lacuna_lsp.bench", context)


def bench_typing(context: typer.Context) -> None:
    """Type stretches of real files in a real Neovim, and count what is saved (see typing --help)."""
    _run("lacuna_lsp.bench.typing", context)


def _run(module: str, context: typer.Context) -> None:
    raise typer.Exit(subprocess.run([sys.executable, "-I", "-m", module, *context.args], check=False).returncode)


def add_to(app: typer.Typer) -> None:
    """Registers the commands."""
    app.command("lsp", context_settings=SETTINGS)(bench_lsp)
    app.command("typing", context_settings=SETTINGS)(bench_typing)
