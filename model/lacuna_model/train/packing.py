"""Turns a built corpus into shards: training files of all languages shuffled together, held-out ones by language."""

import random
from pathlib import Path

from lacuna_model.train.corpus import CorpusError, Progress, Tokenizer
from lacuna_model.train.documents import read_documents
from lacuna_model.train.shards import MAX_SHARD_BYTES, ShardWriter, Tokens


def pack_corpus(
    corpus_dir: Path,
    out_dir: Path,
    tokenizer: Tokenizer,
    progress: Progress | None = None,
    *,
    seed: int = 0,
    max_bytes: int = MAX_SHARD_BYTES,
) -> list[Path]:
    """Write `train-*.shard` and `held_out-LANGUAGE-*.shard`, and return their paths."""
    train = sorted(corpus_dir.glob("*/train.jsonl.zst"))
    held_out = sorted(corpus_dir.glob("*/held_out.jsonl.zst"))
    if not train and not held_out:
        raise CorpusError(f"{corpus_dir}: no corpus here; build it first with: lacuna train corpus")
    groups = {"train": train} if train else {}
    groups |= {f"held_out-{path.parent.name}": [path] for path in held_out}
    paths = []
    for done, (prefix, files) in enumerate(groups.items()):
        if progress:
            progress(done, len(groups), prefix)
        paths += _pack(files, ShardWriter(out_dir, prefix, tokenizer.fingerprint, max_bytes), tokenizer, seed)
    # Shards of an older, larger corpus would be read along with the new ones.
    for prefix in ("train", "held_out-*"):
        for path in set(out_dir.glob(f"{prefix}-[0-9]*.shard")).difference(paths):
            path.unlink()
    return paths


def _pack(files: list[Path], writer: ShardWriter, tokenizer: Tokenizer, seed: int) -> list[Path]:
    # Two bytes a token: even 500 million tokens fit into memory, and one shuffle over everything beats any buffer.
    documents: list[tuple[Tokens, str, str]] = []
    for file in files:
        for document in read_documents(file):
            tokens = tokenizer.encode(document.text)
            documents.append((writer.checked(tokens, document.package), document.language, document.package))
    random.Random(seed).shuffle(documents)
    with writer:
        for stored, language, package in documents:
            writer.write(stored, language, package)
    return writer.paths
