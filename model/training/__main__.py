"""Builds the corpus or trains on it: ``python -m training NAME``; ``--help`` lists what there is."""

from lacuna_model.commands.program import Program

TRAINING = Program(
    "python -m training",
    "Build the corpus of code, and train on it what drafts for a model.",
    "training",
    dict.fromkeys(("corpus", "edits", "targets", "masks", "rows"), "commands"),
    install="pip install -e '.[training]'",
)

if __name__ == "__main__":
    TRAINING.main()
