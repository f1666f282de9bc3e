"""``lacuna train``: from a corpus on disk to an adapter, with progress that a person can follow."""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lacuna_model import models
from lacuna_model.adapter import TrainableCanvas, load_adapter
from lacuna_model.assembly import State, build_transformer, fuse
from lacuna_model.config import ModelConfig
from lacuna_model.errors import WeightsError
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.documents import read_documents
from lacuna_model.train.loop import Trainer, TrainOptions
from lacuna_model.train.validation import ValidationReport, validate
from lacuna_model.transformer import Transformer
from lacuna_model.weights import GgufFile

# Few, so that a checkpoint costs seconds; the same gaps every time.
CHECKPOINT_SAMPLES = 16


def train_main(
    corpus: Path,
    out: Path,
    *,
    options: TrainOptions,
    model: str = models.DEFAULT_MODEL,
    resume: bool = False,
    threads: int = 0,
) -> None:
    """Train an adapter for ``model`` on ``corpus/python/train.jsonl.zst``, checkpointing into ``out``.

    Runs on a GPU where torch sees one. Stops cleanly on SIGINT or SIGTERM; ``resume`` goes on where ``out`` stopped.
    ``out/log.jsonl`` gets a line every few steps, and one of held-out figures at every checkpoint.
    """
    if threads:
        torch.set_num_threads(threads)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists() and not resume:
        raise WeightsError(f"{checkpoint} is there already; go on with --resume, or choose another --out")
    config, tokenizer, fused, base = frozen_base(model)
    canvas = TrainableCanvas(config, fused, rank=options.rank, dtype=torch.bfloat16, seed=options.seed)
    documents, held_out = texts(corpus, "train"), texts(corpus, "held_out")
    trainer = Trainer(base, canvas.to(base.final_norm.device), tokenizer, documents, options)
    if resume:
        trainer.resume(out)
    log = out / "log.jsonl"
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=options.minutes)

        def note(figures: object) -> None:
            with log.open("ab") as file:
                file.write(msgspec.json.encode(figures) + b"\n")

        def report(means: dict[str, float]) -> None:
            progress.update(
                task,
                completed=means["minutes"],
                description=f"step {means['step']:.0f}  loss {means['loss']:.3f}  "
                f"masked accuracy {means['masked_accuracy']:.1%}  {means['slots_seen']:,.0f} slots",
            )
            note(means)

        def score() -> None:
            found = validate(base, canvas, tokenizer, held_out, num_samples=CHECKPOINT_SAMPLES)
            note({"step": trainer.progress.step, "held_out": found})

        trainer.run(out, report, score)


def texts(corpus: Path, split: str) -> list[str]:
    """The texts of one split of a corpus."""
    return [document.text for document in read_documents(corpus / "python" / f"{split}.jsonl.zst")]


def validate_main(
    corpus: Path, adapter: Path, *, model: str = models.DEFAULT_MODEL, num_samples: int = 64, as_json: bool = False
) -> ValidationReport:
    """Score an adapter on the held-out files of ``corpus`` and print the figures."""
    config, tokenizer, fused, base = frozen_base(model)
    canvas = load_canvas(config, fused, adapter)
    found = validate(base, canvas, tokenizer, texts(corpus, "held_out"), num_samples=num_samples)
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        for name, value in msgspec.structs.asdict(found).items():
            sys.stdout.write(f"{name:24} {value:.3f}\n" if isinstance(value, float) else f"{name:24} {value}\n")
    return found


def frozen_base(model: str) -> tuple[ModelConfig, Tokenizer, dict[str, torch.Tensor], Transformer]:
    """The base side in bfloat16, on the device that training runs on, with the fused weights it is made of."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    file = GgufFile(models.path(models.find(model)))
    config = file.config()
    fused = {name: tensor.to(device) for name, tensor in fuse(file.state(), config).items()}
    return config, Tokenizer(file.vocabulary()), fused, build_transformer(config, narrow(fused))


def narrow(fused: State) -> dict[str, torch.Tensor]:
    """The linears in bfloat16; embedding and norms stay as they are."""
    linears: Sequence[str] = [name for name, t in fused.items() if t.ndim == 2 and name != "embedding"]
    return dict(fused) | {name: fused[name].bfloat16() for name in linears}


def load_canvas(config: ModelConfig, fused: State, adapter: Path) -> TrainableCanvas:
    """A canvas with the weights of an adapter file."""
    tensors, _ = load_adapter(adapter)
    rank = next(tensor.shape[0] for name, tensor in tensors.items() if name.endswith(".down"))
    canvas = TrainableCanvas(config, fused, rank=rank, dtype=torch.bfloat16)
    with torch.no_grad():
        for name, parameter in canvas.named_parameters():
            parameter.copy_(tensors[name.replace("/", ".")])
    return canvas
