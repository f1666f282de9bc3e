import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.benchmarks.tasks.dataset import Kind
from tests.benchmarks.tasks.scores import Attempt, report, score, wilson

REQUIRED = {"n", "pass_rate", "exact_match", "syntax_valid", "tokens", "nfe", "tokens_per_pass", "ms_p50", "ms_p95"}


def attempt(engine: str, kind: Kind, *, passed: bool, ms: float = 10.0, tokens: int = 8, nfe: int = 4) -> Attempt:
    return Attempt(
        engine=engine,
        task_id="x",
        kind=kind,
        fill="",
        status="ok",
        verdict="passed" if passed else "failed",
        detail="",
        exact=passed,
        syntax_valid=True,
        tokens=tokens,
        nfe=nfe,
        ms=ms,
    )


def test_the_scores_of_one_engine() -> None:
    scores = score([attempt("a", "single", passed=i < 3, ms=float(i)) for i in range(11)])
    assert (scores.n, scores.pass_rate, scores.exact_match, scores.syntax_valid) == (11, 0.2727, 0.2727, 1.0)
    assert (scores.tokens, scores.nfe, scores.tokens_per_pass) == (88, 44, 2.0)
    assert (scores.ms_p50, scores.ms_p95) == (5.0, 9.5)


def test_the_report_has_every_engine_with_its_kinds_and_the_promised_keys() -> None:
    attempts = [attempt("a", "span", passed=True), attempt("b", "single", passed=False)]
    plain = msgspec.json.decode(msgspec.json.encode(report([*attempts, attempt("a", "multi", passed=False)])))
    assert list(plain) == ["engines"]
    assert list(plain["engines"]) == ["a", "b"]
    assert set(plain["engines"]["a"]) >= REQUIRED
    assert plain["engines"]["a"]["pass_rate"] == 0.5
    assert {kind: one["n"] for kind, one in plain["engines"]["a"]["kinds"].items()} == {"multi": 1, "span": 1}


def test_a_refused_fill_does_not_pass() -> None:
    refused = msgspec.structs.replace(attempt("a", "single", passed=True), status="no_valid_fill")
    assert not refused.passed


def test_wilson_agrees_with_the_published_example() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81 of 263 and 15 of 148.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)


@settings(deadline=None)  # the machine may be busy
@given(n=st.integers(min_value=1, max_value=2000), data=st.data())
def test_wilson_holds_the_rate_within_0_and_1(n: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(min_value=0, max_value=n))
    low, high = wilson(passed, n)
    assert 0.0 <= low <= passed / n <= high <= 1.0
