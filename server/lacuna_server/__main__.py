"""The command ``lacuna``, or ``python -m lacuna_server``."""

from typing import NoReturn

from lacuna_model.commands.program import Program

LACUNA = Program(
    "lacuna",
    "Fill gaps in code with a language model on this machine.",
    "lacuna_server.cli",
    {
        "setup": "setup",
        "uninstall": "setup",
        "complete": "fill",
        "fill": "fill",
        "edit": "edit",
        "refactor": "refactor",
        "context": "context",
        "serve": "serve",
        "status": "serve",
        "stop": "serve",
        "logs": "serve",
        "models": "models",
        "config": "config",
        "doctor": "doctor",
        "mcp": "mcp",
        "cluster": "lacuna_cluster.commands",
    },
    install="pip install lacuna-code",
    headings={
        "setup": "Begin and end",
        "complete": "Fill and change code",
        "serve": "The service that editors share",
        "models": "Models, settings and problems",
        "mcp": "For programs and teams",
    },
)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line with the given arguments, by default those of the process, and exits."""
    LACUNA.main(arguments)


if __name__ == "__main__":
    main()
