"""Runs a benchmark: ``python -m tests.benchmarks NAME``; ``--help`` lists them."""

from lacuna_model.commands.program import Program

BENCHMARKS = Program(
    "python -m tests.benchmarks",
    "Measure Lacuna: quality, speed, the constraint, and suggestions in an editor.",
    "tests.benchmarks",
    {
        "evaluate": "evaluate",
        "next-edits": "tests.benchmarks.edits.server",
        "typing": "tests.benchmarks.editor.typing.main",
        "speed": "tests.benchmarks.engine.speed",
        "drafts": "tests.benchmarks.engine.drafts",
        "syntax": "tests.benchmarks.constraint.measure",
        "unclean": "tests.benchmarks.constraint.measure",
        "fit-gate": "tests.benchmarks.fitting.gate",
        "fit-ranking": "tests.benchmarks.fitting.ranking",
    },
    install="pip install -e '.[benchmarks]'",
)

if __name__ == "__main__":
    BENCHMARKS.main()
