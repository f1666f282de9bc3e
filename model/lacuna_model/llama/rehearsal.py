"""Opens a file with libllama in a process of its own: the library ends the process for some files that it refuses.

``python -m lacuna_model.llama.rehearsal FILE`` is that process. It reads sizes and vocabulary, maps the weights without
reading them, and plans the passes of a short context.
"""

import os
import subprocess
import sys
from pathlib import Path

from lacuna_model.core.errors import WeightsError
from lacuna_model.llama import library as api
from lacuna_model.llama.library import library

CELLS = 64
TIMEOUT_S = 300.0


def rehearse(path: Path, library_path: Path) -> None:
    """Raise WeightsError for a file with which the library ends the process, or does not come to an end."""
    command = [sys.executable, "-I", "-m", __name__, str(path)]
    quiet = {**os.environ, "GGML_NO_BACKTRACE": "1", api.VARIABLE: str(library_path)}
    try:
        done = subprocess.run(command, env=quiet, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise WeightsError(f"libllama does not come to an end with {path}") from error
    if done.returncode not in (0, 1):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it does not say why"]
        raise WeightsError(f"libllama breaks down at {path} ({said[0]})")


def main(path: str) -> None:
    """Open the file; whatever is refused in order is refused again, with a reason, where the model is loaded."""
    found = library()
    params = found("model_default_params")
    params.put(*api.GPU_LAYERS, 0)
    if model := found("model_load_from_file", path.encode(), params):
        of_context = found("context_default_params")
        for field, value in ((api.CELLS, CELLS), (api.BATCH, CELLS), (api.THREADS, 1), (api.BATCH_THREADS, 1)):
            of_context.put(*field, value)
        found("init_from_model", model, of_context)


if __name__ == "__main__":
    main(sys.argv[1])
