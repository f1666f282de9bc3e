"""The texts of a corpus, drawn without end so that all languages and packages are seen early."""

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random

from training.stored.documents import read_documents
from training.stored.packages import CorpusError

LEAST_BYTES, MAX_BYTES = 400, 200_000
PART = 1 / 16


def texts(corpus: Path, split: str, seed: int) -> Iterator[str]:
    """Yields texts of a corpus's ``split`` without end; raises CorpusError if it has none.

    A language is drawn with the square root of its size, so that no small one is repeated over and over.
    """
    paths = sorted(corpus.glob(f"*/{split}.jsonl.zst"))
    if not paths:
        raise CorpusError(f"{corpus}: no {split} files; `python -m training corpus` builds the corpus")
    rng = Random(seed)
    languages = [_shuffled(path, rng) for path in paths]
    weights = [math.sqrt(path.stat().st_size) for path in paths]
    while True:
        (language,) = rng.choices(languages, weights)
        yield next(language)


def _shuffled(path: Path, rng: Random) -> Iterator[str]:
    """Yields the texts of a file again and again: of each pass a random ``PART``, in random order.

    The documents of a package are neighbours in the file, and a short training shall see all packages.
    """
    while True:
        num_usable, drawn = 0, list[str]()
        for document in read_documents(path):
            if LEAST_BYTES <= len(document.text) <= MAX_BYTES:
                num_usable += 1
                if rng.random() < PART:
                    drawn.append(document.text)
        if not num_usable:
            raise CorpusError(f"{path}: no text of {LEAST_BYTES} to {MAX_BYTES} bytes")
        rng.shuffle(drawn)
        yield from drawn
