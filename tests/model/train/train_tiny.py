"""Trains the tiny model in a process of its own, to be killed: `train_tiny.py FOLDER`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny

from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.batches import BatchSource
from lacuna_model.train.loop import Trainer, TrainOptions
from lacuna_model.train.samples import SampleOptions
from lacuna_model.train.shards import ShardReader, ShardWriter, TokenDocument

TOKENIZER = Tokenizer(tiny.VOCABULARY)
TEXTS = (tiny.CODE, tiny.CODE.replace("value", "item").replace("Account", "Ledger"))
SAMPLES = SampleOptions(block_sizes=(4, 6, 8), context=160, slots=24, rows=56, max_gaps=3, snippet_context=32)


def document(text: str = tiny.CODE) -> TokenDocument:
    return TokenDocument(TOKENIZER.encode(text), "python", "tiny")


def write_shard(folder: Path, prefix: str = "train", texts: Sequence[str] = TEXTS) -> list[Path]:
    with ShardWriter(folder, prefix, TOKENIZER.fingerprint) as writer:
        for text in texts:
            writer.write(writer.checked(TOKENIZER.encode(text), "tiny"), "python", "tiny")
    return writer.paths


def source(
    folder: Path, samples: SampleOptions = SAMPLES, batch_size: int = 2, seed: int = 0, texts: Sequence[str] = TEXTS
) -> BatchSource:
    reader = ShardReader(write_shard(folder, texts=texts), TOKENIZER.fingerprint, seed)
    return BatchSource(reader, TOKENIZER, samples, batch_size, tiny.CONFIG.shift, seed)


def trainer(folder: Path, **options: object) -> Trainer:
    # A rate that does not fall depends on neither the machine's speed nor the number of steps to come.
    rate = {"learning_rate": 0.01, "warmup_steps": 5, "final_rate": 1.0}
    chosen = TrainOptions(**{"minutes": 5.0, "rank": 4, "batch_size": 2, "report_steps": 1} | rate | options)
    drawn = source(folder / "shards", batch_size=chosen.batch_size, seed=chosen.seed)
    return Trainer(tiny.transformer(), tiny.trainable(), drawn, chosen)


if __name__ == "__main__":
    torch.set_num_threads(1)
    trainer(Path(sys.argv[1]), checkpoint_minutes=0.0, workers=1).run(
        Path(sys.argv[1]), lambda report: print(report["step"], report["loss"], flush=True)
    )
