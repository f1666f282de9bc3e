"""Fakes of what an evaluation runs: engines and llama.cpp."""

from collections.abc import Callable, Sequence
from pathlib import Path

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult
from lacuna_model.tokens.tokenizer import Tokenizer

# The part of llama-cpp-python that is used. It generates the tokens of MODEL.says and logs its calls in MODEL.log.
LLAMA_CPP = """
import json
from pathlib import Path

class Llama:
    def __init__(self, model_path, *, draft_model, **options):
        path = Path(model_path)
        if path.read_bytes()[:4] != b"GGUF":
            raise ValueError(f"Failed to load model from file: {model_path}")
        self.says, self.log = path.with_suffix(".says"), path.with_suffix(".log")
        self.tell(options | {"drafts": draft_model and draft_model.num_pred_tokens})

    def tell(self, what):
        if self.says.exists():
            with self.log.open("a") as log:
                log.write(json.dumps(what) + "\\n")

    def generate(self, tokens, **options):
        self.tell(options | {"prompt": tokens})
        yield from json.loads(self.says.read_text()) if self.says.exists() else []

def llama_print_system_info():
    return b"CPU : AVX2 = 1 | FMA = 1 | "
"""
SPECULATIVE = """
class LlamaPromptLookupDecoding:
    def __init__(self, num_pred_tokens):
        self.num_pred_tokens = num_pred_tokens
"""


def write_llama_cpp(folder: Path) -> Path:
    """Writes the fake package into ``folder``; returns the folder, which a test adds to ``sys.path``."""
    package = folder / "llama_cpp"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(LLAMA_CPP)
    (package / "llama_speculative.py").write_text(SPECULATIVE)
    return folder


class Continuing:
    """Continues a prompt with ``script(text of the prompt)`` and an end token.

    The text leaves out special tokens. Tokens after the FIM middle token are the part already generated.
    """

    def __init__(self, tokenizer: Tokenizer, script: Callable[[str], str]) -> None:
        self.prompts: list[list[int]] = []
        self._tokenizer = tokenizer
        self._script = script

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        self.prompts.append(list(prompt))
        middle = self._tokenizer.fim.middle if self._tokenizer.fim else -1
        asked = prompt.index(middle) + 1 if middle in prompt else len(prompt)
        said = self._tokenizer.encode(self._script(self._tokenizer.decode(prompt[:asked])))
        return [*said, *sorted(ends)[:1]][len(prompt) - asked :][:max_tokens]


class Canned:
    """A filler that answers every gap of a request by ``answer(text before the first gap, gap index)``."""

    def __init__(self, name: str, answer: Callable[[str, int], str]) -> None:
        self.name = name
        self.requests: list[InfillRequest] = []
        self._answer = answer

    def fill(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        before = request.text.encode()[: request.regions[0].start].decode()
        fills = tuple(self._answer(before, i) for i in range(len(request.regions)))
        tokens = sum(region.max_tokens for region in request.regions)
        return InfillResult("ok", fills, FillStats(nfe=max(1, tokens // 4), tokens=tokens))
