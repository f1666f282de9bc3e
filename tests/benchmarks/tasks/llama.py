"""llama.cpp on a GGUF file, through ``llama-cpp-python`` in a separate process, and as an engine that fills gaps."""

import importlib.util
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from lacuna_model.core import regions as region_groups
from lacuna_model.core.context import WindowChooser, WindowOptions
from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_model.core.stopping import StopRule
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.hub import models
from lacuna_model.network.devices import choose_threads
from lacuna_model.readers import load_tokenizer
from lacuna_model.tokenizer import Tokenizer

# Published wheels use only common CPU instructions; a local build uses all that this machine has.
INSTALL = "CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python"
NUM_CONTEXT = 2048
# After each piece of this many tokens the stop rule is checked; the prompt cache avoids reading again.
PIECE_TOKENS = 32


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

    ``threads`` are used for prompt and generation. A separate process runs it, because its threads would slow down
    Lacuna's. Raises LacunaError if llama-cpp-python is not installed or cannot load the file.
    """

    def __init__(self, gguf: Path, *, threads: int = 2) -> None:
        require()
        self._process = own_process()
        self.compiled_for: str = self._process.submit(_load, str(gguf), threads).result()

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        """Returns at most ``max_tokens`` tokens after ``prompt``, up to and including the first of ``ends``."""
        return self._process.submit(_generate, list(prompt), max_tokens, ends).result()


# The model, in the separate process.
_loaded: list[Any] = []


def _load(gguf: str, threads: int) -> str:
    """Loads the file; returns llama.cpp's report of the instructions that it was compiled for."""
    import llama_cpp  # type: ignore[import-not-found,unused-ignore]  # not a dependency: INSTALL installs it

    try:
        _loaded.append(
            llama_cpp.Llama(gguf, n_ctx=NUM_CONTEXT, n_threads=threads, n_threads_batch=threads, verbose=False)
        )
    except ValueError as error:
        raise LacunaError(f"llama.cpp cannot load {gguf}: {error}") from error
    said: bytes = llama_cpp.llama_print_system_info()
    return said.decode().strip(" |\n")


def _generate(prompt: list[int], max_tokens: int, ends: frozenset[int]) -> list[int]:
    generated: list[int] = []
    for token in _loaded[0].generate(prompt, temp=0.0):
        generated.append(token)
        if token in ends or len(generated) == max_tokens:
            break
    return generated


class LlamaFiller:
    """Fills gaps with a fill-in-the-middle model in llama.cpp: the file, prompt and stop rule of Lacuna's engine.

    The prompt is prefix, suffix, middle, over the same window. The fill is greedy and ends with any end token, or where
    the stop rule for left-to-right models applies; what repeats the suffix is trimmed. Several gaps are filled in
    order, each with the earlier fills in place. Raises RequestError for a model without fill-in-the-middle tokens.
    """

    name = "llama.cpp"

    def __init__(self, llama: Continues, tokenizer: Tokenizer) -> None:
        if tokenizer.fim is None:
            raise RequestError(f"{self.name} needs a model with fill-in-the-middle tokens")
        self._llama = llama
        self._tokenizer = tokenizer
        self._fim = tokenizer.fim

    @classmethod
    def load(cls, model: str) -> "LlamaFiller":
        """Returns the filler of a model of the registry, or of a GGUF file."""
        return cls(LlamaCpp(models.weights(model), threads=choose_threads()), load_tokenizer(model))

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request; ignores its decode options, including a deadline."""
        started = time.perf_counter()
        text = request.text.encode()
        region_groups.check(request.regions, text)
        fills: list[str] = []
        passes, read = 0, 0
        for index in range(len(request.regions)):
            current, (region,) = region_groups.text_for(text, request.regions, fills, range(index, index + 1))
            prompt = self._prompt(request, current, region)
            (rule,) = region_groups.stop_rules(current, [region])
            generated = self._continue(prompt, region.max_tokens, rule)
            passes, read = passes + len(generated), read + len(prompt)
            fill = rule.end(self._said(generated), final=True) or ""
            fills.append(trim_overlap(fill, current[region.end :].decode()))
        stats = FillStats(
            nfe=passes,
            steps=passes,
            tokens=sum(len(self._tokenizer.encode(fill)) for fill in fills),
            context_tokens=read,
            ms=(time.perf_counter() - started) * 1000,
        )
        return InfillResult("ok", tuple(fills), stats)

    def _prompt(self, request: InfillRequest, text: bytes, region: Region) -> list[int]:
        window, encode = WindowChooser(WindowOptions()), self._tokenizer.encode
        before = window.before(text[: region.start], self._tokenizer).decode()
        after = window.after(text[region.end :], self._tokenizer).decode()
        head = prompt_head(self._fim, self._tokenizer, request.snippets, request.path)
        return [*head, *encode(before), self._fim.suffix, *encode(after), self._fim.middle]

    def _continue(self, prompt: list[int], max_tokens: int, rule: StopRule) -> list[int]:
        """Returns the continuation of a prompt up to its end; works in pieces, to stop soon after the rule applies."""
        generated: list[int] = []
        while len(generated) < max_tokens and rule.end(self._said(generated), final=False) is None:
            most = min(PIECE_TOKENS, max_tokens - len(generated))
            piece = self._llama.generate([*prompt, *generated], most, self._fim.ends)
            generated += piece
            if len(piece) < most or piece[-1] in self._fim.ends:
                break
        return generated

    def _said(self, generated: list[int]) -> str:
        """Returns the text of tokens; end tokens have none."""
        return self._tokenizer.decode_bytes(generated).decode("utf-8", errors="ignore")


def trim_overlap(fill: str, after: str) -> str:
    """``fill`` without an end that repeats the beginning of ``after`` up to the end of one of its lines."""
    for end in reversed([match.end() for match in re.finditer(r"\n|\Z", after)]):
        repeated = after[:end]
        if repeated.strip() and fill.endswith(repeated):
            return fill[: -len(repeated)]
    return fill
