"""A fake of llama.cpp."""

from pathlib import Path

# The part of llama-cpp-python that is used. It generates the tokens of MODEL.says.
LLAMA_CPP = """
import json
from pathlib import Path

class Llama:
    def __init__(self, model_path, **options):
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
