"""Runs llama.cpp on a GGUF file, through ``llama-cpp-python`` in a separate process; takes and returns tokens."""

import importlib.util
import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.errors import LacunaError

# Published wheels use only common CPU instructions; a local build uses all that this machine has.
INSTALL = "CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python"
NUM_CONTEXT = 2048
# llama-cpp-python's advice for CPUs, where longer drafts cost more than they save.
NUM_DRAFTED = 2
# Drafts of a smaller model hold more often.
NUM_MODEL_DRAFTED = 4


class Continues(Protocol):
    """An engine that continues a prompt."""

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        """Returns at most ``max_tokens`` tokens after ``prompt``, up to and including the first of ``ends``."""
        ...


def installed() -> bool:
    """Whether llama-cpp-python is installed."""
    return importlib.util.find_spec("llama_cpp") is not None


def require() -> None:
    """Raises LacunaError if llama-cpp-python is not installed."""
    if not installed():
        raise LacunaError(f"llama.cpp is not installed; run: {INSTALL}")


def own_process() -> ProcessPoolExecutor:
    """A process of its own for llama.cpp, which ends with this process, even if that is killed."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


class LlamaCpp:
    """A GGUF file in llama.cpp: generates greedily, and does not re-read the prefix that two prompts share.

    ``threads`` are used for prompt and generation. With ``ngrams`` it drafts the tokens that followed the last n-gram
    earlier, and verifies them; with a ``drafting`` GGUF file, those that this smaller model writes. A separate process
    runs it, because its threads would slow down Lacuna's. Raises LacunaError if llama-cpp-python is not installed or
    cannot load the file.
    """

    def __init__(
        self,
        gguf: Path,
        *,
        threads: int = 2,
        num_context: int = NUM_CONTEXT,
        ngrams: bool = False,
        drafting: Path | None = None,
    ) -> None:
        require()
        self._process = own_process()
        loaded = self._process.submit(_load, str(gguf), threads, num_context, ngrams, str(drafting or ""))
        self.compiled_for: str = loaded.result()

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        """Returns at most ``max_tokens`` tokens after ``prompt``, up to and including the first of ``ends``."""
        return self._process.submit(_generate, list(prompt), max_tokens, ends).result()


# The model, in the separate process.
_loaded: list[Any] = []


def _load(gguf: str, threads: int, num_context: int, ngrams: bool, drafting: str) -> str:
    """Loads the file; returns llama.cpp's report of the instructions that it was compiled for."""
    import llama_cpp  # type: ignore[import-not-found,unused-ignore]  # not a dependency: INSTALL installs it
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding  # type: ignore[import-not-found,unused-ignore]

    sizes: dict[str, Any] = {"n_ctx": num_context, "n_threads": threads, "n_threads_batch": threads, "verbose": False}
    drafts: Any = LlamaPromptLookupDecoding(num_pred_tokens=NUM_DRAFTED) if ngrams else None
    try:
        if drafting:
            drafts = _ModelDrafts(llama_cpp.Llama(drafting, **sizes))
        # llama.cpp keeps the logits of a draft only together with those of the prompt.
        model = llama_cpp.Llama(gguf, **sizes, logits_all=drafts is not None, draft_model=drafts)
    except ValueError as error:
        raise LacunaError(f"llama.cpp cannot load {gguf}: {error}") from error
    _loaded.append(model)
    said: bytes = llama_cpp.llama_print_system_info()
    return said.decode().strip(" |\n")


class _ModelDrafts:
    """Drafts of a smaller model, as llama-cpp-python asks for them; it keeps what it has read, too."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, input_ids: NDArray[np.intc], /, **_: Any) -> NDArray[np.intc]:
        drafted = islice(self._model.generate(input_ids.tolist(), temp=0.0), NUM_MODEL_DRAFTED)
        return np.array(list(drafted), dtype=np.intc)


def _generate(prompt: list[int], max_tokens: int, ends: frozenset[int]) -> list[int]:
    generated: list[int] = []
    for token in _loaded[0].generate(prompt, temp=0.0):
        generated.append(token)
        if token in ends or len(generated) == max_tokens:
            break
    return generated
