"""Suggestions in lines that are being typed."""

from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.evaluate.typed import Shown, Typed, shown, suggest, typed_cases
from lacuna_model.params import FillStats, InfillRequest, InfillResult, Status
from lacuna_model.train.documents import Document

PYTHON = "".join(f"def f{i}(größe):\n    # a note\n    return größe + {i}\n\n\n" for i in range(12))
GO = "".join(f"func f{i}(größe int) int {{\n\treturn größe + {i}\n}}\n\n" for i in range(12))
DOCUMENTS = [
    Document(package="p", version="1", licence="MIT", path=path, language=language, text=text)
    for path, language, text in (("p/a.py", "python", PYTHON), ("p/a.go", "go", GO))
]


class Says:
    """An engine that says one text, and how sure it is."""

    name = "says"

    def __init__(self, fill: str, confidence: float, status: Status = "ok") -> None:
        self._said = fill, confidence, status

    def fill(self, request: InfillRequest) -> InfillResult:
        fill, confidence, status = self._said
        return InfillResult(status, request.text, (fill,), FillStats(), confidence=((confidence,),))


@given(seed=st.integers(min_value=0, max_value=10_000))
def test_a_cursor_stands_in_a_line_of_code_whose_rest_is_gone(seed: int) -> None:
    cases = list(typed_cases(DOCUMENTS, 8, seed))
    assert cases == list(typed_cases(DOCUMENTS, 8, seed))
    assert [case.request.language for case in cases] == ["go", "python"] * 4
    texts = {document.language: document.text for document in DOCUMENTS}
    for case in cases:
        (region,), (truth,) = case.request.regions, case.truths
        filled = case.document(case.truths)
        assert region.single_line
        assert truth
        assert "note" not in truth
        assert filled.encode()[region.start + len(truth.encode()) :].startswith(b"\n")
        assert texts[case.request.language].startswith(filled.rstrip("\n"))


def test_a_suggestion_is_right_if_it_is_the_rest_of_the_line() -> None:
    (case,) = typed_cases(DOCUMENTS, 1, 0)
    right, wrong = suggest(case, Says(case.truths[0] + " ", 0.5)), suggest(case, Says("other", 0.1))
    assert right is not None
    assert wrong is not None
    assert (right.exact, right.confidence, right.language, right.package) == (True, 0.5, "go", "p")
    assert not wrong.exact
    assert suggest(case, Says("  ", 0.5)) is None
    assert suggest(case, Says("refused", 0.5, "no_valid_fill")) is None


def test_what_a_threshold_comes_to() -> None:
    seen = [
        Typed("go", "p", "x", "x", exact, confidence, 1.0)
        for exact, confidence in ((True, 0.9), (True, 0.3), (False, 0.3), (False, 0.1))
    ]
    assert shown(seen, (0.0, 0.2, 0.5, 1.0)) == [
        Shown(0.0, 1.0, 0.5, 1.0),
        Shown(0.2, 0.75, 2 / 3, 1.0),
        Shown(0.5, 0.25, 1.0, 0.5),
        Shown(1.0, 0.0, 0.0, 0.0),
    ]
