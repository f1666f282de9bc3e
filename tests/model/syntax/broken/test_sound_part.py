"""Fills of one line in files with errors elsewhere: above or below, from a merge, or in unfinished code."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.model.syntax.cases import Case, load
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, fill, noisy, require
from tests.model.syntax.test_constraint import Samples, cut

from lacuna_model.core.constraint import ConstraintStats
from lacuna_model.core.params import Region
from lacuna_model.syntax import Language, SyntaxConstraint
from lacuna_model.syntax.broken.sound_part import sound_part
from lacuna_model.syntax.check.error_set import tree_faults
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.proving.judge import Judge
from lacuna_model.syntax.text.scan import scan

MARK = "<|>"
# Files with errors outside of the line with the gap, and the text that is typed in the line.
BROKEN = load("broken_lines")


def split(marked: str) -> tuple[bytes, int]:
    return marked.replace(MARK, "").encode(), marked.encode().index(MARK.encode())


@pytest.mark.parametrize("case", BROKEN)
def test_a_line_is_not_refused_for_errors_that_the_file_had_before(tokens: SmallTokens, case: Case) -> None:
    name, text, place, (typed,) = case.language, case.text, case.place, case.takes
    region = Region(place, place, max_tokens=32, max_lines=1, single_line=True)
    constraint = SyntaxConstraint(text, [region], require(name), tokens)
    verdict = fill(constraint, certain([tokens.encode(typed)], tokens.eog_id), [32], tokens.eog_id)
    assert verdict.fills is not None
    assert verdict.fills[0].startswith(typed)


def errors(text: bytes, language: Language) -> int:
    tree = language.parser().parse(text)
    return len(tree_faults(tree)) + len(indentation_faults(tree, text) if language.columns else ())


@pytest.mark.parametrize("case", BROKEN)
def test_a_fill_leaves_no_more_errors_than_the_neutral_or_the_right_fill(tokens: SmallTokens, case: Case) -> None:
    name, text, place, (typed,) = case.language, case.text, case.place, case.takes
    part = sound_part(text, (place, place), require(name), in_line=True)
    region = Region(place, place, max_tokens=16, max_lines=1, single_line=True)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        model = noisy([tokens.encode(typed)], tokens, rng, 1.0)
        verdict = fill(SyntaxConstraint(text, [region], require(name), tokens), model, [16], tokens.eog_id, rng=rng)
        if verdict.fills is None:
            continue
        delivered = verdict.fills[0].encode()
        neutral = part.neutral if part is not None else b""
        most = max(errors(text[:place] + one + text[place:], require(name)) for one in (neutral, b"", typed.encode()))
        assert errors(text[:place] + delivered + text[place:], require(name)) <= most, delivered


def test_an_open_try_stays_a_block_and_the_rest_of_the_file_is_checked() -> None:
    text, place = split("def f():\n    try:\n        y = <|>\n    z = 1\n")
    part = sound_part(text, (place, place), require("python"), in_line=True)
    assert part is not None
    assert part.document is not None
    assert part.text == text.replace(b"try", b"if x")
    assert part.document.check_fresh([b"1"]).valid
    assert not part.document.check_fresh([b"1 2"]).valid


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("python", "x = f(<|>\ny = 2\n"),
        ("c", "int f(void) <|>\n  return 1;\n}\n"),
        ("javascript", "if (a <|>\n  b();\n}\n"),
        ("lua", "if a <|>\n  b()\nend\n"),
        ("python", "try:\n    a()\n<|>\n    b()\n"),
        ("json", '{"a": 1 <|>\n"b": 2}\n'),
    ],
)
def test_nothing_is_left_out_of_a_file_that_the_line_may_repair(name: str, marked: str) -> None:
    text, place = split(marked)
    part = sound_part(text, (place, place), require(name), in_line=True)
    assert part is None or (part.text == text and part.document is None)


@pytest.mark.parametrize("name", ["python"])
@settings(max_examples=6, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_nothing_is_left_out_of_a_file_that_has_a_valid_fill(
    samples: Samples, tokens: SmallTokens, name: str, seed: int
) -> None:
    language, text = samples[name]
    hollow, regions, _ = cut(text, tokens, seed, 1, 12)
    removed = text[text.rfind(b"\n", 0, regions[0].start) + 1 : regions[0].start + len(text) - len(hollow) + 8]
    assume(b"try:" not in removed and b"except" not in removed)  # half of a statement that is seldom guessed
    gap = regions[0].start, regions[0].end
    assert not Judge(hollow, gap, language, Clock(), ConstraintStats(), in_line=False).is_broken


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_sound_part_of_any_text_holds_the_gap_and_its_line(data: st.DataObject) -> None:
    language = require("python")
    alphabet = st.sampled_from(["(", ")", "{", "}", "<", ">", "'", '"', "\n", " ", "a", "if", "=", "<<<<<<< a\n", "#"])
    head, tail = (data.draw(st.lists(alphabet, max_size=25).map("".join)).encode() for _ in range(2))
    part = sound_part(head + tail, (len(head), len(head)), language, in_line=True)
    if part is None:
        return
    text, (start, end) = part.text, part.gap
    assert start == end
    assert text[:start].rpartition(b"\n")[2].lstrip() == head.rpartition(b"\n")[2].lstrip()
    assert text[end:].partition(b"\n")[0] == tail.partition(b"\n")[0]


def test_a_string_without_an_end_is_scanned_in_one_pass() -> None:
    lexicon = require("python").lexicon
    assert scan(b'"""' + rb"\r\n" * 500, lexicon).inside == b'"""'
    assert scan(b'"""a\\', lexicon).inside == b'"""'
