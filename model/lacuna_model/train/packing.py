"""Turns a built corpus into shards: training files of all languages shuffled together, held-out ones by language."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from lacuna_model.train.corpus import MANIFEST, Progress
from lacuna_model.train.documents import Document, read_documents
from lacuna_model.train.manifest import Manifest, read_manifest
from lacuna_model.train.packages import CorpusError
from lacuna_model.train.shards import MAX_SHARD_BYTES, ShardWriter, Tokens

_BATCH = 256


class Tokenizer(Protocol):
    """What makes tokens of documents."""

    @property
    def fingerprint(self) -> str:
        """Hash of vocabulary and merges."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of several texts."""
        ...


def pack_corpus(
    corpus_dir: Path,
    out_dir: Path,
    tokenizer: Tokenizer,
    progress: Progress | None = None,
    *,
    seed: int = 0,
    max_bytes: int = MAX_SHARD_BYTES,
) -> list[Path]:
    """Write `train-*.shard` and `held_out-LANGUAGE-*.shard`, and return their paths.

    Beside them goes the corpus's `manifest.json`, which now also counts tokens.
    """
    train = sorted(corpus_dir.glob("*/train.jsonl.zst"))
    held_out = sorted(corpus_dir.glob("*/held_out.jsonl.zst"))
    if not train and not held_out:
        raise CorpusError(f"{corpus_dir}: no corpus here; build it first with: lacuna train corpus")
    manifest = read_manifest(corpus_dir / MANIFEST)
    groups = {"train": train} if train else {}
    groups |= {f"held_out-{path.parent.name}": [path] for path in held_out}
    paths = []
    count = _Count()
    for done, (prefix, files) in enumerate(groups.items()):
        if progress:
            progress(done, len(groups), prefix)
        paths += _pack(files, ShardWriter(out_dir, prefix, tokenizer.fingerprint, max_bytes), tokenizer, seed, count)
    # Shards of an older, larger corpus would be read along with the new ones.
    for prefix in ("train", "held_out-*"):
        for path in set(out_dir.glob(f"{prefix}-[0-9]*.shard")).difference(paths):
            path.unlink()
    count.enter(manifest)
    manifest.tokenizer = tokenizer.fingerprint
    manifest.write(out_dir / MANIFEST)
    return paths


class _Count:
    """Tokens by package, and by language and split."""

    def __init__(self) -> None:
        self._packages: Counter[tuple[str, str]] = Counter()
        self._totals: Counter[str] = Counter()

    def add(self, document: Document, split: str, tokens: int) -> None:
        self._packages[document.package, document.version] += tokens
        self._totals[f"{document.language}/{split}"] += tokens

    def enter(self, manifest: Manifest) -> None:
        """Write the counts into a manifest."""
        for record in manifest.packages:
            record.tokens = self._packages[record.name, record.version]
        for key, total in manifest.totals.items():
            total.tokens = self._totals[key]


def _pack(files: list[Path], writer: ShardWriter, tokenizer: Tokenizer, seed: int, count: _Count) -> list[Path]:
    # Two bytes a token: even 500 million tokens fit into memory, and one shuffle over everything beats any buffer.
    documents: list[tuple[Tokens, str, str]] = []
    for file in files:
        split = file.name.partition(".")[0]
        for document, tokens in _tokenised(file, tokenizer):
            count.add(document, split, len(tokens))
            documents.append((writer.checked(tokens, document.package), document.language, document.package))
    random.Random(seed).shuffle(documents)
    with writer:
        for stored, language, package in documents:
            writer.write(stored, language, package)
    return writer.paths


def _tokenised(file: Path, tokenizer: Tokenizer) -> Iterator[tuple[Document, list[int]]]:
    documents = read_documents(file)
    while batch := list(islice(documents, _BATCH)):
        yield from zip(batch, tokenizer.encode_batch([document.text for document in batch]), strict=True)
