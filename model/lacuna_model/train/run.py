"""``lacuna train``: from shards on disk to an adapter."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import torch

from lacuna_kernels import attention_dtype
from lacuna_model.adapter import TrainableCanvas, load_adapter
from lacuna_model.assembly import build_transformer, fuse, narrow
from lacuna_model.config import ModelConfig
from lacuna_model.devices import choose_device
from lacuna_model.errors import WeightsError
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.batches import BatchSource
from lacuna_model.train.checkpoint import load_weights
from lacuna_model.train.loop import CHECKPOINT, Trainer
from lacuna_model.train.recipe import Recipe
from lacuna_model.train.samples import SampleOptions
from lacuna_model.train.shards import ShardReader
from lacuna_model.train.throughput import Figures
from lacuna_model.train.validation import ValidationReport, validate
from lacuna_model.transformer import Transformer
from lacuna_model.weights import GgufFile

# Few, so that a checkpoint costs seconds; the same gaps every time.
CHECKPOINT_SAMPLES = 32
# What is scored depends on no recipe, so that recipes can be compared.
VALIDATION = SampleOptions(block_sizes=(16,), max_gaps=3, slots=48, rows=104, context=384, snippets=0.0, nodes=0.0)
VALIDATION_BATCH = 8
# How long a shard that is still on its way is waited for, in seconds.
PATIENCE = 600.0


class Base:
    """The frozen base side in bfloat16, on the device that training runs on."""

    def __init__(self, weights: Path) -> None:
        self.device = choose_device()
        file = GgufFile(weights)
        self.config: ModelConfig = file.config()
        self.tokenizer = Tokenizer(file.vocabulary())
        self.fused = {name: tensor.to(self.device) for name, tensor in fuse(file.state(), self.config).items()}
        self.transformer: Transformer = build_transformer(self.config, narrow(self.fused))

    def source(
        self, shards: list[Path], samples: SampleOptions, batch_size: int, seed: int, patience: float = 0.0
    ) -> BatchSource:
        """Batches of ``shards`` for this model."""
        reader = ShardReader(shards, self.tokenizer.fingerprint, seed, patience)
        return BatchSource(reader, self.tokenizer, samples, batch_size, self.config.shift, seed)

    def canvas(self, rank: int, seed: int = 0) -> TrainableCanvas:
        """A canvas side that has learnt nothing yet."""
        canvas = TrainableCanvas(self.config, self.fused, rank=rank, dtype=torch.bfloat16, seed=seed)
        return canvas.to(self.device)

    def load_canvas(self, file: Path) -> TrainableCanvas:
        """A canvas side with the weights of an adapter, or of a checkpoint as they are before they are quantised."""
        tensors = load_weights(file) if file.suffix == ".pt" else load_adapter(file)[0]
        rank = next(tensor.shape[0] for name, tensor in tensors.items() if name.endswith(".down"))
        canvas = self.canvas(rank)
        with torch.no_grad():
            for name, parameter in canvas.named_parameters():
                parameter.copy_(tensors[name.replace("/", ".")])
        return canvas


def train(
    base: Base,
    shards: Path,
    out: Path,
    recipe: Recipe,
    report: Callable[[Figures], None],
    *,
    resume: bool = False,
    start_from: Path | None = None,
    expected: list[str] | None = None,
) -> None:
    """Train an adapter on the `train-*.shard` of ``shards``, checkpointing into ``out``.

    Runs on a GPU where torch sees one. Stops cleanly on SIGINT or SIGTERM; ``resume`` goes on where ``out`` stopped,
    ``start_from`` begins with an adapter's weights. ``expected`` names all shards where some of them come later.
    ``out/log.jsonl`` gets a line every few steps, and one of held-out figures at every checkpoint.
    """
    options = recipe.train
    checkpoint = out / CHECKPOINT
    if checkpoint.exists() and not resume:
        raise WeightsError(f"{checkpoint} is there already; go on with --resume, or choose another --out")
    torch.use_deterministic_algorithms(options.deterministic, warn_only=True)
    paths = [shards / name for name in expected] if expected else sorted(shards.glob("train-*.shard"))
    patience = PATIENCE if expected else 0.0
    source = base.source(paths, recipe.samples, options.batch_size, options.seed, patience)
    canvas = base.load_canvas(start_from) if start_from else base.canvas(options.rank, options.seed)
    trainer = Trainer(base.transformer, canvas, source, options, recipe.loss)
    if resume:
        trainer.resume(out)
    log = out / "log.jsonl"

    def note(figures: object) -> None:
        with log.open("ab") as file:
            file.write(msgspec.json.encode(figures) + b"\n")

    def progress(figures: Figures) -> None:
        note(figures)
        report(figures)

    def score() -> None:
        if held_out_shards(shards):
            found = score_held_out(base, canvas, shards, num_samples=CHECKPOINT_SAMPLES)
            note({"step": trainer.progress.step, "held_out": found})

    trainer.run(out, progress, score)


def held_out_shards(shards: Path, language: str = "python") -> list[Path]:
    """The shards of held-out files of a language."""
    return sorted(shards.glob(f"held_out-{language}-*.shard"))


def score_held_out(
    base: Base,
    canvas: TrainableCanvas,
    shards: Path,
    *,
    num_samples: int,
    language: str = "python",
    context: int = VALIDATION.context,
) -> ValidationReport:
    """Score a canvas on stretches of held-out files, of ``context`` tokens at most."""
    options = msgspec.structs.replace(VALIDATION, context=context)
    source = base.source(held_out_shards(shards, language), options, VALIDATION_BATCH, seed=0)
    dtype = attention_dtype(base.device)
    return validate(base.transformer, canvas, source, num_samples=num_samples, dtype=dtype)
