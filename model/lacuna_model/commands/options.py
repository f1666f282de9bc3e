"""The options that commands of several programs share."""

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on stdout.")]
LISTED_HELP = "Use this model: a name from `lacuna models list`."
MODEL_HELP = f"{LISTED_HELP[:-1]}, a GGUF file with fill-in-the-middle tokens, or a folder with safetensors."
DEVICE_HELP = "Run the model on cpu, cuda, cuda:N or mps; by default on a CUDA GPU if there is one."
