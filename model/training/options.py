"""The options that training and benchmarks share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna_model.commands.program import DEVICE_HELP, MODEL_HELP
from lacuna_model.hub import models

# Typer calls a default that can be called, so that only a command that needs the folder asks where it is.
CORPUS: Any = lambda: models.cache_dir() / "corpus"  # noqa: E731 (typer shows a function's name in the help)
CorpusOption = Annotated[
    Path, typer.Option("--corpus", help="Read the corpus in this folder (see `python -m training corpus`).")
]
ModelOption = Annotated[str, typer.Option("--model", help=MODEL_HELP)]
DeviceOption = Annotated[str, typer.Option("--device", help=DEVICE_HELP)]
PackagesOption = Annotated[
    Path | None,
    typer.Option("--packages", help="Read the packages from this list; by default, from the one that ships."),
]
KeepOption = Annotated[Path, typer.Option("--out", help="Keep checkpoints and the result here; resume from there.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Draw with this random seed.")]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, help="Use this many CPU threads; 0: one per core, at most 8.")
]
