"""The benchmarked engines under one interface: Lacuna's and llama.cpp."""

from typing import Protocol

from tests.benchmarks.engine.contexts import Context, Encode
from tests.benchmarks.tasks.llama import Continues
from tests.benchmarks.tasks.runner import Filler

from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, ReadContext, Region, Task


class Completer(Protocol):
    """An engine that generates a given number of tokens at a gap."""

    name: str

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Generates after ``typed`` in the gap; returns the number of generated tokens."""
        ...

    def rest(self, context: Context) -> None:
        """Does what an engine does while the cursor rests in the gap."""
        ...


class FillerCompleter:
    """An infilling engine: the gap follows the prefix and the typed text, and precedes the suffix.

    The syntax constraint is off, because a fill with a forced number of tokens may end anywhere. ``bench_syntax``
    measures the cost of the constraint.
    """

    def __init__(self, filler: Filler) -> None:
        self.name = filler.name
        self._filler = filler

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Fills the gap with exactly ``num_tokens`` tokens; returns the number of generated tokens."""
        request = _request(context, typed, num_tokens)
        return self._filler.fill(request).stats.tokens

    def rest(self, context: Context) -> None:
        """Reads ahead, as editors ask for."""
        self._filler.fill(_request(context, "", 1, ReadContext()))


def _request(context: Context, typed: str, num_tokens: int, task: Task = FillGaps()) -> InfillRequest:  # noqa: B008 (frozen)
    before = context.before + typed
    gap = len(before.encode())
    region = Region(gap, gap, max_tokens=num_tokens, min_tokens=num_tokens)
    text = before + "\n" + context.after
    options = DecodeOptions(syntax=False)
    return InfillRequest(text=text, regions=(region,), task=task, path="bench.py", language="python", options=options)


class LlamaCompleter:
    """llama.cpp, generating left to right: its prompt is the whole text, prefix and suffix, without a gap.

    That favours llama.cpp: in a fill-in-the-middle prompt the suffix comes last, and the prompt cache, which keeps a
    common beginning, would not cover it after a keystroke.
    """

    def __init__(self, name: str, llama: Continues, encode: Encode) -> None:
        self.name = name
        self._llama = llama
        self._encode = encode

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Continues the text greedily by exactly ``num_tokens`` tokens; no token ends it."""
        prompt = self._encode(context.before + context.after + typed)
        return len(self._llama.generate(prompt, num_tokens))

    def rest(self, context: Context) -> None:
        """Does nothing: its prompt cache has what it has read."""
