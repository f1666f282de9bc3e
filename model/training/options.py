"""The options of commands that read the corpus."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna_model.hub import models

# Typer calls a default that can be called, so that only a command that needs the folder asks where it is.
CORPUS: Any = lambda: models.cache_dir() / "corpus"  # noqa: E731 (typer shows a function's name in the help)
CorpusOption = Annotated[
    Path, typer.Option("--corpus", help="Read the corpus in this folder (see `python -m training corpus`).")
]
