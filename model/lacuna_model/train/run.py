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
    """
    if threads:
        torch.set_num_threads(threads)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists() and not resume:
        raise WeightsError(f"{checkpoint} is there already; go on with --resume, or choose another --out")
    config, tokenizer, fused, base = frozen_base(model)
    canvas = TrainableCanvas(config, fused, rank=options.rank, dtype=torch.bfloat16, seed=options.seed)
    documents = [document.text for document in read_documents(corpus / "python" / "train.jsonl.zst")]
    trainer = Trainer(base, canvas.to(base.final_norm.device), tokenizer, documents, options)
    if resume:
        trainer.resume(out)
    log = out / "log.jsonl"
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=options.minutes)

        def report(means: dict[str, float]) -> None:
            progress.update(
                task,
                completed=means["minutes"],
                description=f"step {means['step']:.0f}  loss {means['loss']:.3f}  "
                f"masked accuracy {means['masked_accuracy']:.1%}  {means['slots_seen']:,.0f} slots",
            )
            with log.open("ab") as file:
                file.write(msgspec.json.encode(means) + b"\n")

        trainer.run(out, report)


def validate_main(
    corpus: Path, adapter: Path, *, model: str = models.DEFAULT_MODEL, num_samples: int = 64, as_json: bool = False
) -> ValidationReport:
    """Score an adapter on the held-out files of ``corpus`` and print the figures."""
    config, tokenizer, fused, base = frozen_base(model)
    canvas = load_canvas(config, fused, adapter)
    documents = [document.text for document in read_documents(corpus / "python" / "held_out.jsonl.zst")]
    found = validate(base, canvas, tokenizer, documents, num_samples=num_samples)
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
