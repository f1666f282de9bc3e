"""Corpora of a few texts."""

from pathlib import Path

from training.stored import Document, DocumentWriter


def corpus(folder: Path, **languages: list[str]) -> Path:
    """A corpus with these texts by language, each for training and held out."""
    for language, contents in languages.items():
        for split in ("train", "held_out"):
            with DocumentWriter(folder / language / f"{split}.jsonl.zst") as writer:
                for number, text in enumerate(contents):
                    writer.write(Document("p", "1", "MIT", f"{number}", language, text))
    return folder
