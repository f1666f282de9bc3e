"""Suggestions in lines that are being typed."""

from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.engine.typed import (
    MAX_TO_COME,
    Shown,
    Typed,
    shown,
    suggest,
    typed_cases,
)

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Status
from training.stored.documents import Document

PYTHON = "".join(f"def f{i}(größe):\n    # a note\n    return größe + {i}\n\n\n" for i in range(12))
GO = "".join(f"func f{i}(größe int) int {{\n\treturn größe + {i}\n}}\n\n" for i in range(12))
DOCUMENTS = [
    Document(package="p", version="1", licence="MIT", path=path, language=language, text=text)
    for path, language, text in (("p/a.py", "python", PYTHON), ("p/a.go", "go", GO))
]


class FixedFill:
    """A fake engine that answers every request with the same fill, confidence and status."""

    name = "says"

    def __init__(self, fill: str, confidence: float, status: Status = "ok") -> None:
        self._said = fill, confidence, status

    def fill(self, request: InfillRequest) -> InfillResult:
        fill, confidence, status = self._said
        return InfillResult(status, request.text, (fill,), FillStats(), confidence=((confidence,),))


@given(seed=st.integers(min_value=0, max_value=10_000))
def test_the_text_after_a_cursor_is_removed_up_to_the_end_of_its_line_or_brackets(seed: int) -> None:
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
        assert filled.encode()[region.start + len(truth.encode()) :].startswith((b"\n", b")"))
        assert truth.count("(") == truth.count(")") or "(" in filled.encode()[: region.start].decode()
        end = region.start + len(truth.encode())
        line, _, below = filled.encode()[end:].decode().partition("\n")
        whole = texts[case.request.language]
        assert whole.startswith(filled.encode()[:end].decode() + line)
        assert whole.rstrip("\n").endswith(below.rstrip("\n"))
        assert whole.count("\n") - filled.count("\n") <= MAX_TO_COME or not below


def test_a_suggestion_is_exact_if_it_equals_the_rest_of_the_line() -> None:
    (case,) = typed_cases(DOCUMENTS, 1, 0)
    right, wrong = suggest(case, FixedFill(case.truths[0] + " ", 0.5)), suggest(case, FixedFill("other", 0.1))
    assert (right.exact, right.confidence, right.language, right.package) == (True, 0.5, "go", "p")
    assert not wrong.exact
    assert right.suggested
    assert not suggest(case, FixedFill("  ", 0.5)).suggested
    refused = suggest(case, FixedFill("refused", 0.5, "no_valid_fill"))
    assert (refused.suggested, refused.refused) == (False, True)


def test_a_threshold_decides_which_suggestions_are_shown_and_how_many_are_right() -> None:
    seen = [
        Typed(language="go", package="p", fill="x", truth="x", exact=exact, confidence=confidence, ms=1.0)
        for exact, confidence in ((True, 0.9), (True, 0.3), (False, 0.3), (False, 0.1))
    ]
    assert shown(seen, (0.0, 0.2, 0.5, 1.0)) == [
        Shown(0.0, 1.0, 0.5, 1.0),
        Shown(0.2, 0.75, 2 / 3, 1.0),
        Shown(0.5, 0.25, 1.0, 0.5),
        Shown(1.0, 0.0, 0.0, 0.0),
    ]


def test_the_truth_of_a_cursor_in_brackets_ends_at_the_closing_bracket() -> None:
    lines = ["x = f(größe, [a[1]], '(')  # (b)", "y = {}"]
    text = "\n".join([*lines * 9, *(f"z = g({i})" for i in range(30))])
    code = Document(package="p", version="1", licence="MIT", path="a.py", language="python", text=text)
    truths = {
        case.truths[0] for case in typed_cases([code], 600, 0) if suggest(case, FixedFill("", 0)).where == "in brackets"
    }
    assert {"größe, [a[1]], '('", "a[1]", "1", "17"} <= truths
    assert not any("b" in truth for truth in truths)
    assert all(truth.strip() for truth in truths)
