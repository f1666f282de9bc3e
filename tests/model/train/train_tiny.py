"""Trains the tiny model in a process of its own, to be killed: `train_tiny.py FOLDER`."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny

from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.loop import Trainer, TrainOptions
from lacuna_model.train.samples import SampleOptions

DOCUMENTS = (tiny.CODE, tiny.CODE.replace("value", "item").replace("Account", "Ledger"))


def trainer(**options: object) -> Trainer:
    # A rate that does not fall depends on neither the machine's speed nor the number of steps to come.
    rate = {"learning_rate": 0.01, "warmup_steps": 5, "final_rate": 1.0}
    chosen = {"minutes": 5.0, "rank": 4, "samples_per_step": 2, "report_steps": 1} | rate | options
    return Trainer(
        tiny.transformer(),
        tiny.trainable(),
        Tokenizer(tiny.VOCABULARY),
        DOCUMENTS,
        TrainOptions(**chosen),
        sampling=SampleOptions(window_chars=200, max_gaps=3),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    trainer(checkpoint_minutes=0.0).run(
        Path(sys.argv[1]), lambda report: print(report["step"], report["loss"], flush=True)
    )
