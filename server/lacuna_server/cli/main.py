"""The command ``lacuna``."""

from typing import NoReturn

from lacuna_server.cli.program import Program

LACUNA = Program(
    "lacuna",
    "Fill gaps in code with a language model on this machine.",
    "lacuna_server.cli.commands",
    {
        "setup": "setup",
        "uninstall": "setup",
        "fill": "fill",
        "complete": "fill",
        "edit": "edit",
        "refactor": "refactor",
        "serve": "serve",
        "status": "serve",
        "stop": "serve",
        "models": "models",
        "context": "context",
        "mcp": "mcp",
        "config": "config",
        "logs": "logs",
        "doctor": "doctor",
        "cluster": "cluster",
    },
    install="pip install lacuna-code",
)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line with the given arguments, by default those of the process, and exits."""
    LACUNA.main(arguments)
