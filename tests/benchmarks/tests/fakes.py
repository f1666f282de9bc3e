"""Fakes of what an evaluation runs: engines and llama.cpp."""

from collections.abc import Callable
from pathlib import Path

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult

# The part of llama-cpp-python that is used. It generates the tokens of MODEL.says.
LLAMA_CPP = """
import json
from pathlib import Path

class Llama:
    def __init__(self, model_path, **options):
        if Path(model_path).read_bytes()[:4] != b"GGUF":
            raise ValueError(f"Failed to load model from file: {model_path}")
        self.says = Path(model_path).with_suffix(".says")

    def generate(self, tokens, **options):
        yield from json.loads(self.says.read_text())

def llama_print_system_info():
    return b"CPU : AVX2 = 1 | FMA = 1 | "
"""


def write_llama_cpp(folder: Path) -> Path:
    """Writes the fake package into ``folder``; returns the folder, which a test adds to ``sys.path``."""
    package = folder / "llama_cpp"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(LLAMA_CPP)
    return folder


class Canned:
    """A filler that answers every gap of a request by ``answer(text before the first gap, gap index)``."""

    def __init__(self, name: str, answer: Callable[[str, int], str]) -> None:
        self.name = name
        self._answer = answer

    def fill(self, request: InfillRequest) -> InfillResult:
        before = request.text.encode()[: request.regions[0].start].decode()
        fills = tuple(self._answer(before, i) for i in range(len(request.regions)))
        return InfillResult("ok", fills, FillStats(nfe=2, tokens=8))
