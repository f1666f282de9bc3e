"""The engines of the bench behind one small interface: ours, and llama.cpp from the wheel ``xllamacpp``."""

import importlib.util
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from lacuna_model.errors import LacunaError
from lacuna_model.evaluate.bench_contexts import Context
from lacuna_model.evaluate.runner import Filler
from lacuna_model.params import DecodeOptions, InfillRequest, Region


class Completer(Protocol):
    """An engine that generates a given number of tokens at a gap."""

    name: str

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Generates after ``typed`` in the gap; returns how many tokens were generated."""
        ...


class FillerCompleter:
    """An infilling engine: the gap lies between the text before it, with what was typed, and the text after it.

    The syntax constraint is off: text forced to a number of tokens has to end anywhere, which no constraint allows.
    What the constraint costs is measured apart (``bench_syntax``).
    """

    def __init__(self, filler: Filler) -> None:
        self.name = filler.name
        self._filler = filler

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Fills the gap with exactly ``num_tokens`` tokens; counts generated tokens alone."""
        before = context.before + typed
        gap = len(before.encode())
        region = Region(gap, gap, max_tokens=num_tokens, min_tokens=num_tokens)
        request = InfillRequest(
            text=before + "\n" + context.after,
            regions=(region,),
            path="bench.py",
            language="python",
            options=DecodeOptions(syntax=False),
        )
        return self._filler.fill(request).stats.tokens


class LlamaCpp:
    """llama.cpp left to right. It knows no gap, so the same text, all of it, is the prompt that it continues.

    ``threads`` serve prompt and generation alike. The published wheel is built for any x86-64 machine, without
    AVX-512; that is what a user gets from PyPI. It has a process of its own: in ours its threads made ours wait longer
    at every barrier, which doubled the time of our passes.
    """

    name = "llama.cpp"

    def __init__(self, gguf: Path, *, threads: int = 2, num_context: int = 2048) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise LacunaError("llama.cpp is not installed; run: pip install 'lacuna-code[bench]'")
        self._process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        self._process.submit(_start_server, str(gguf), threads, num_context).result()

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Continues the text by exactly ``num_tokens`` tokens, greedily; end-of-text is never taken."""
        prompt = context.before + context.after + typed
        answer = self._process.submit(_continue, prompt, num_tokens).result()
        if "usage" not in answer:
            raise LacunaError(f"llama.cpp refused the prompt: {answer.get('message', answer)}")
        return int(answer["usage"]["completion_tokens"])


# The server, in the process that has one.
_servers: list[Any] = []


def _start_server(gguf: str, threads: int, num_context: int) -> None:
    import xllamacpp  # type: ignore[import-untyped]  # the wheel ships no types

    params = xllamacpp.CommonParams()
    params.model.path = gguf
    params.n_ctx = num_context
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.cache_prompt = True
    params.verbosity = -1
    try:
        _servers.append(xllamacpp.Server(params))
    except RuntimeError as error:
        raise LacunaError(f"llama.cpp cannot load {gguf}: {error}") from error


def _continue(prompt: str, num_tokens: int) -> dict[str, Any]:
    asked = {"prompt": prompt, "n_predict": num_tokens, "temperature": 0, "ignore_eos": True, "cache_prompt": True}
    answer: dict[str, Any] = _servers[0].handle_completions(asked)
    return answer
