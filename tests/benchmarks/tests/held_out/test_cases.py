import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.held_out.cases import SHAPES, sample_cases

from lacuna_model.core.errors import LacunaError
from training.stored.documents import Document

PYTHON = '"""A module.\n\nOf several lines of prose.\n"""\n' + "".join(
    f"def function_{i}(count):\n    # a note\n    größe = count * {i}\n    return größe + 1\n\n\n" for i in range(12)
)
RUST = "/* a note\n   of two lines */\n" + "".join(
    f"/// note {i}\nfn f{i}(größe: u32) -> u32 {{\n    let name = größe * {i}; // kept: code stands before it\n"
    '    print("a text\n        note\n    ");\n    name + 1\n}\n\n'
    for i in range(12)
)


def document(text: str, language: str = "python") -> Document:
    return Document(package="p", version="1", licence="MIT", path="p/m", language=language, text=text)


@given(seed=st.integers(min_value=0, max_value=10_000), source=st.sampled_from([("python", PYTHON), ("rust", RUST)]))
def test_gaps_hold_code_and_their_truths_restore_the_file(seed: int, source: tuple[str, str]) -> None:
    language, text = source
    cases = sample_cases([document(text, language)], 6, seed)
    assert cases == sample_cases([document(text, language)], 6, seed)
    assert [case.shape for case in cases] == [*SHAPES, *SHAPES]
    for case in cases:
        assert case.document(case.truths) == text
        starts = [region.start for region in case.request.regions]
        assert starts == sorted(set(starts))
        assert len(starts) == 1 if case.shape != "gaps" else 1 <= len(starts) <= 4
        assert all("note" not in truth.split("\n")[0] and "prose" not in truth for truth in case.truths)
        assert all(not truth[0].isspace() and not truth.endswith("\n") for truth in case.truths)


def test_files_that_are_too_short_are_refused() -> None:
    with pytest.raises(LacunaError, match="no file long enough"):
        sample_cases([document("x = 1\n")], 3, 0)
