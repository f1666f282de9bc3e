"""The engines of the bench behind one small interface: ours, and llama.cpp from the wheel ``xllamacpp``."""

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
    AVX-512; that is what a user gets from PyPI.
    """

    name = "llama.cpp"

    def __init__(self, gguf: Path, *, threads: int = 2, num_context: int = 2048) -> None:
        try:
            import xllamacpp  # type: ignore[import-untyped]  # the wheel ships no types
        except ImportError as error:
            raise LacunaError("llama.cpp is not installed; run: pip install 'lacuna-code[bench]'") from error
        params = xllamacpp.CommonParams()
        params.model.path = str(gguf)
        params.n_ctx = num_context
        params.n_parallel = 1
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.cache_prompt = True
        params.verbosity = -1
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise LacunaError(f"llama.cpp cannot load {gguf}: {error}") from error

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Continues the text by exactly ``num_tokens`` tokens, greedily; end-of-text is never taken."""
        answer: dict[str, Any] = self._server.handle_completions(
            {
                "prompt": context.before + context.after + typed,
                "n_predict": num_tokens,
                "temperature": 0,
                "ignore_eos": True,
                "cache_prompt": True,
            }
        )
        if "usage" not in answer:
            raise LacunaError(f"llama.cpp refused the prompt: {answer.get('message', answer)}")
        return int(answer["usage"]["completion_tokens"])
