import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.prior.suffix_array import MAX_PLACES, SuffixArray, join, token_type

DOCUMENTS = st.lists(st.lists(st.integers(0, 3), max_size=12), max_size=5)
KINDS = [49_152, 151_936]


def occurrences(documents: list[list[int]], run: list[int]) -> list[tuple[int, int]]:
    """Document and offset of every occurrence of a run, by brute force."""
    return [
        (number, at)
        for number, document in enumerate(documents)
        for at in range(len(document) - len(run) + 1)
        if document[at : at + len(run)] == run
    ]


@pytest.mark.parametrize("vocab_size", KINDS, ids=["16-bit", "32-bit"])
@given(documents=DOCUMENTS, run=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_every_occurrence_within_documents_is_found(
    vocab_size: int, documents: list[list[int]], run: list[int]
) -> None:
    kind = token_type(vocab_size)
    array = SuffixArray(join(documents, kind), kind)
    places = np.sort(array.places(array.find(np.array(run, dtype=kind).tobytes())))
    numbers = array.documents_of(places)
    found = list(zip(numbers.tolist(), (places - array.borders[numbers] - 1).tolist(), strict=True))
    assert found == occurrences(documents, run)


def test_of_very_many_places_a_sample_is_taken() -> None:
    kind = token_type(100)
    array = SuffixArray(join([[7] * (3 * MAX_PLACES)], kind), kind)
    first, last = array.find(np.array([7], dtype=kind).tobytes())
    assert last - first == 3 * MAX_PLACES
    assert len(set(array.places((first, last)).tolist())) == MAX_PLACES
