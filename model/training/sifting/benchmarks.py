"""Keeps benchmark problems out of the corpus by the word n-grams that they share with a file."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from training.stored.packages import CorpusError

_WORD = re.compile(r"\w+")
_NGRAM = 10
# Many unrelated files share ten consecutive numbers or one-letter names, but not ten real words.
_MIN_WORDS = 6
_MENTION = re.compile(r"human[-_ ]?eval(?!uat)|\bmbpp\b", re.IGNORECASE)
# MBPP's wording. No registry carries its problems, so a file with several such phrases counts as a copy of them.
_ORDER = re.compile(r"\bwrite a (?:python )?function (?:to|that|which)\b", re.IGNORECASE)
_MAX_ORDERS = 2
# Problems are plain functions; methods with the same name are not matched.
_DEFINITION = re.compile(r"^def\s+(\w+)", re.MULTILINE)
_PROBLEM_FIELDS = ("prompt", "canonical_solution", "suffix", "text", "code")


class Benchmarks:
    """The n-grams and function names of the benchmark problems."""

    def __init__(self) -> None:
        self._ngrams: set[tuple[str, ...]] = set()
        self._entry_points: set[str] = set()

    def add(self, problem: Mapping[str, object]) -> None:
        """Adds a problem: its prompt and solution in the form of HumanEval, MBPP or HumanEval-Infilling."""
        texts = [problem.get(field) for field in _PROBLEM_FIELDS]
        ngrams = _ngrams("".join(text for text in texts if isinstance(text, str)))
        self._ngrams.update(ngram for ngram in ngrams if _telling(ngram))
        name = problem.get("entry_point")
        if isinstance(name, str):
            self._entry_points.add(name)

    def read(self, path: Path) -> None:
        """Adds every problem of a `.jsonl` or `.jsonl.gz` file; raises CorpusError if it cannot be read."""
        try:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            self.add_lines(data)
        except (OSError, EOFError, ValueError) as error:
            raise CorpusError(f"{path}: cannot read the benchmark problems: {error}") from error

    def add_lines(self, data: bytes) -> None:
        """Adds every problem of JSON-lines data."""
        for line in data.splitlines():
            if line.strip():
                self.add(json.loads(line))

    def contaminates(self, text: str) -> bool:
        """Whether a file quotes a problem, names a benchmark, or defines several of its functions."""
        if _MENTION.search(text) or len(_ORDER.findall(text)) > _MAX_ORDERS:
            return True
        if len(self._entry_points.intersection(_DEFINITION.findall(text))) > 1:
            return True
        return not self._ngrams.isdisjoint(_ngrams(text))


def _ngrams(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return zip(*(words[i:] for i in range(_NGRAM)), strict=False)


def _telling(ngram: tuple[str, ...]) -> bool:
    return len({word for word in ngram if len(word) > 1 and not word[0].isdigit()}) >= _MIN_WORDS
