"""The options that several benchmarks share."""

from typing import Annotated

import typer

from lacuna_model.commands.options import LISTED_HELP

ListedModelOption = Annotated[str, typer.Option("--model", help=LISTED_HELP)]
NoiseOption = Annotated[
    float,
    typer.Option("--noise", min=0.0, max=1.0, help="Make the best token wrong in this share of slots; 1: in all."),
]
