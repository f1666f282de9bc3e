"""Runs a benchmark: ``python -m tests.benchmarks NAME``; ``--help`` lists them."""

from lacuna_model.commands.program import Program

BENCHMARKS = Program(
    "python -m tests.benchmarks",
    "Measure Lacuna: quality, speed, the constraint, suggestions in an editor and the service.",
    "tests.benchmarks.commands",
    {
        "evaluate": "evaluate",
        "next-edits": "editor",
        "speed": "engine",
        "passes": "engine",
        "kernels": "engine",
        "drafts": "drafts",
        "syntax": "constraint",
        "unclean": "constraint",
        "lsp": "editor",
        "names": "names",
        "typing": "typing",
        "serve": "service",
        "fit-gate": "fitting",
        "fit-ranking": "fitting",
    },
    install="pip install -e '.[benchmarks]'",
)

if __name__ == "__main__":
    BENCHMARKS.main()
