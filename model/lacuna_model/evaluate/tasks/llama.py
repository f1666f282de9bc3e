"""llama.cpp, the peer: a GGUF file read by ``llama-cpp-python`` in a process of its own; tokens in, tokens out."""

import importlib.util
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from lacuna_model.core.errors import LacunaError

# A published wheel is built for any machine of its kind; only compiled here does it use what this one can do.
INSTALL = "CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python"
NUM_CONTEXT = 2048
# Longer drafts cost a CPU more than they bring: what llama-cpp-python advises there.
NUM_DRAFTED = 2


class Continues(Protocol):
    """What continues a prompt."""

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        """The tokens that follow ``prompt``, at most so many, up to and with the first of ``ends``."""
        ...


def installed() -> bool:
    """Whether llama-cpp-python is here."""
    return importlib.util.find_spec("llama_cpp") is not None


def require() -> None:
    """Raise LacunaError where llama-cpp-python is not here."""
    if not installed():
        raise LacunaError(f"llama.cpp is not installed; run: {INSTALL}")


class LlamaCpp:
    """A GGUF file in llama.cpp; greedy, and what a prompt shares with the one before is not read again.

    ``threads`` serve prompt and generation alike. With ``ngrams`` it drafts what followed the last tokens the last time
    and verifies that. It has a process of its own: in ours its threads make ours wait longer at every barrier. Raises
    LacunaError where llama-cpp-python is not installed or cannot load the file.
    """

    def __init__(self, gguf: Path, *, threads: int = 2, num_context: int = NUM_CONTEXT, ngrams: bool = False) -> None:
        require()
        self._process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        self.compiled_for: str = self._process.submit(_load, str(gguf), threads, num_context, ngrams).result()

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        """The tokens that follow ``prompt``, at most so many, up to and with the first of ``ends``."""
        return self._process.submit(_generate, list(prompt), max_tokens, ends).result()


# The model, in the process that has one.
_loaded: list[Any] = []


def _load(gguf: str, threads: int, num_context: int, ngrams: bool) -> str:
    """Load the file; returns what llama.cpp says of the instructions that it was compiled for."""
    import llama_cpp  # type: ignore[import-not-found,unused-ignore]  # no dependency of ours: INSTALL gets it
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding  # type: ignore[import-not-found,unused-ignore]

    try:
        model = llama_cpp.Llama(
            gguf,
            n_ctx=num_context,
            n_threads=threads,
            n_threads_batch=threads,
            # It keeps the logits of a draft where those of the prompt are kept, too.
            logits_all=ngrams,
            draft_model=LlamaPromptLookupDecoding(num_pred_tokens=NUM_DRAFTED) if ngrams else None,
            verbose=False,
        )
    except ValueError as error:
        raise LacunaError(f"llama.cpp cannot load {gguf}: {error}") from error
    _loaded.append(model)
    said: bytes = llama_cpp.llama_print_system_info()
    return said.decode().strip(" |\n")


def _generate(prompt: list[int], max_tokens: int, ends: frozenset[int]) -> list[int]:
    generated: list[int] = []
    for token in _loaded[0].generate(prompt, temp=0.0):
        generated.append(token)
        if token in ends or len(generated) == max_tokens:
            break
    return generated
