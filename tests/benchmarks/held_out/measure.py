"""``evaluate --held-out``: how well engines restore gaps in held-out files: exact match, edit similarity and syntax."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq
from tests.benchmarks.figures import Row
from tests.benchmarks.held_out.cases import Case, HeldOut, valid
from tests.benchmarks.tasks import fills
from tests.benchmarks.tasks.fills import Answer, Question, Scores

DEFAULT_CASES = 3


def questions(
    files: Mapping[str, HeldOut], count: int, seed: int, encode: Callable[[str], list[int]]
) -> list[Question]:
    """So many cases of each language, in groups by the shape of gaps."""

    def scores(case: Case) -> Callable[[str, Sequence[str]], Scores]:
        return lambda text, found: _scores(case, text, found, encode)

    return [
        Question(f"{language} {number}", case.shape, case.request, scores(case))
        for language, texts in files.items()
        for number, case in enumerate(texts.cases(count, seed))
    ]


def _scores(case: Case, text: str, found: Sequence[str], encode: Callable[[str], list[int]]) -> Scores:
    """Compares fills with the true texts; white space at their ends does not count.

    *Similarity* is the normalised Indel similarity, the "edit similarity" of CrossCodeEval (arXiv 2310.11248), *true
    tokens in it* the share of the true tokens that a fill contains in their order.
    """
    pairs = list(zip(found, case.truths, strict=True))
    exact = sum(fill.rstrip() == truth.rstrip() for fill, truth in pairs)
    similar = tuple(round(fuzz.ratio(fill, truth) / 100, 4) for fill, truth in pairs)
    right = tuple(round(LCSseq.similarity(encode(one), encode(truth)) / len(encode(truth)), 4) for one, truth in pairs)
    counts = {"exact": exact, "parse": int(valid(text, case.request.language))}
    return Scores(counts, len(pairs), {"similarity": similar, "true tokens in it": right})


def rows(found: Sequence[Answer]) -> list[Row]:
    """The figures of every engine by the shape of gaps, then by language, each with those of all."""
    return fills.rows(found) + fills.rows([replace(one, group=one.name.split()[0]) for one in found])
