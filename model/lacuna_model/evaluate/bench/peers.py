"""The engines of the bench behind one small interface: ours, and llama.cpp."""

from typing import Protocol

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.evaluate.bench.contexts import Context, Encode
from lacuna_model.evaluate.tasks.llama import Continues
from lacuna_model.evaluate.tasks.runner import Filler


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


class LlamaCompleter:
    """llama.cpp left to right. It knows no gap, so the same text, all of it, is the prompt that it continues.

    That favours it: in a fill-in-the-middle prompt the text behind the gap comes last, and its cache, which keeps what
    a prompt begins with, would have it read that text anew with every key.
    """

    def __init__(self, name: str, llama: Continues, encode: Encode) -> None:
        self.name = name
        self._llama = llama
        self._encode = encode

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        """Continues the text by exactly ``num_tokens`` tokens, greedily; no token ends it."""
        prompt = self._encode(context.before + context.after + typed)
        return len(self._llama.generate(prompt, num_tokens))
