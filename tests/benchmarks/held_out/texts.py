"""The held-out files of a corpus, by language."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import msgspec
from tests.benchmarks.held_out.cases import Case, sample_cases

from lacuna_model.core.errors import RequestError
from training.files import parser_of, parses
from training.stored import Document, read_documents

_FILE = "held_out.jsonl.zst"
# The largest number of files per language that get gaps.
_FILES = 40
# The limit for a fill that finds no end; five lines have about half as many tokens.
_MAX_TOKENS = 96


class HeldOut:
    """The held-out files of a language by path; a path consists of language, package and number."""

    def __init__(self, corpus_file: Path, language: str) -> None:
        self._documents: dict[str, Document] = {}
        for number, document in enumerate(read_documents(corpus_file)):
            path = f"{language}/{document.package}/{number}"
            self._documents[path] = msgspec.structs.replace(document, path=path, language=language)

    def cases(self, count: int, seed: int) -> list[Case]:
        """Returns cases in files drawn by ``seed`` that parse; raises LacunaError if none is long enough."""
        paths = list(self._documents)
        drawn = map(self._documents.__getitem__, Random(seed).sample(paths, len(paths)))
        usable = list(islice((one for one in drawn if valid(one.text, one.language)), _FILES))
        return [_bounded(case) for case in sample_cases(usable, count, seed)]


def _bounded(case: Case) -> Case:
    regions = tuple(
        msgspec.structs.replace(region, max_tokens=min(region.max_tokens, _MAX_TOKENS))
        for region in case.request.regions
    )
    return msgspec.structs.replace(case, request=msgspec.structs.replace(case.request, regions=regions))


def find_held_out(corpus: Path, languages: Sequence[str] = ()) -> Mapping[str, Path]:
    """Returns the held-out files of a corpus folder by language; raises RequestError for a missing language."""
    found = {path.parent.name: path for path in sorted(corpus.glob(f"*/{_FILE}"))}
    if not found:
        raise RequestError(f"{corpus}: no held-out files here; `python -m training corpus` builds the corpus")
    if unknown := [language for language in languages if language not in found]:
        raise RequestError(f"{corpus}: no held-out files of {unknown[0]!r}; there are {', '.join(found)}")
    return {language: found[language] for language in languages or found}


def valid(text: str, language: str) -> bool:
    """Whether a file has no syntax error, by Python's own parser or by the grammar of its language."""
    return parses(text, language) and not (
        language != "python" and parser_of(language).parse(text.encode()).root_node.has_error
    )
