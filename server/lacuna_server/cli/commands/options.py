"""The options that several subcommands share."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.core.params import MAX_CANDIDATES, ScheduleName
from lacuna_model.hub import models

MAX_TOKENS = 1024
MAX_SEED = 2**63 - 1

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The source file, in UTF-8.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
LISTED_HELP = "A model that `lacuna models list` shows."
MODEL_HELP = f"{LISTED_HELP[:-1]}, a GGUF file that can fill in the middle, or a folder of safetensors."
ModelOption = Annotated[str, typer.Option("--model", help=MODEL_HELP)]
ListedModelOption = Annotated[str, typer.Option("--model", help=LISTED_HELP)]
WatchOption = Annotated[bool, typer.Option("--watch", help="Show the denoising live, on stderr.")]
StepsOption = Annotated[
    int, typer.Option("--steps", min=0, help="At most this many passes per block of slots; 0: as many as it needs.")
]
TokensOption = Annotated[int, typer.Option("--max-tokens", min=1, max=MAX_TOKENS, help="Longest fill of a gap.")]
CandidatesOption = Annotated[
    int,
    typer.Option("--candidates", min=1, max=MAX_CANDIDATES, help="So many fills, of which the likeliest."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=MAX_SEED, help="Seed of the sampler.")]
ScheduleOption = Annotated[ScheduleName, typer.Option("--schedule", help="Which slots are committed in a step.")]
DeadlineOption = Annotated[
    int, typer.Option("--deadline-ms", min=0, help="Return the longest valid part after this time; 0: no deadline.")
]
NoSyntaxOption = Annotated[bool, typer.Option("--no-syntax", help="Do not check the fill against the grammar.")]
LanguageOption = Annotated[str, typer.Option("--language", help="The file's language; by default from its name.")]
WorkspaceOption = Annotated[
    Path | None, typer.Option("--workspace", help="The project's folder; by default the one found above FILE.")
]
NoWorkspaceOption = Annotated[bool, typer.Option("--no-workspace", help="Read no other file than FILE.")]

CORPUS = models.cache_dir() / "corpus"
CorpusOption = Annotated[Path, typer.Option("--corpus", help="The folder that `lacuna train corpus` made.")]
