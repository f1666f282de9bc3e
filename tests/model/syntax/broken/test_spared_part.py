"""Fills beside syntax that is newer than the grammar: what the grammar cannot read is left out of what it checks."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.syntax.cases import Case, load
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import require
from tests.model.syntax.test_constraint import Samples, cut

from lacuna_model.core.constraint import Commit
from lacuna_model.core.context import Gap
from lacuna_model.core.params import Region
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.syntax import LANGUAGES, SyntaxConstraint, parses
from lacuna_model.syntax.broken.spared_part import spared_part

MARK = "<|>"
FEW = 64


def split(marked: str) -> tuple[bytes, int]:
    return marked.replace(MARK, "").encode(), marked.encode().index(MARK.encode())


def written(tokens: SmallTokens, case: Case, wanted: str) -> str | None:
    """The fill of a model that knows only its next token, as a model that writes from left to right does."""
    in_line = "\n" not in wanted
    region = Region(case.place, case.place, max_tokens=FEW, max_lines=1 if in_line else None, single_line=in_line)
    constraint, canvas = SyntaxConstraint(case.text, [region], require(case.language), tokens), Canvas(Gap(0), 16, FEW)
    ids = [*tokens.encode(wanted), tokens.eog_id]
    for _ in range(3 * FEW):
        if canvas.closed:
            break
        if canvas.is_full or not canvas.slots:
            canvas.open_block()
        frontier = canvas.slots.index(None)
        so_far = [*canvas.done, *canvas.slots[:frontier]]
        token = ids[len(so_far)] if so_far == ids[: len(so_far)] and len(so_far) < len(ids) else tokens.eog_id
        rows = frontier + 1
        logp = np.full((rows, 1), -0.05, dtype=np.float32)
        view = canvas.view(Marginals(np.full((rows, 1), token), logp, np.zeros(rows, dtype=np.float32), 1))
        for one in constraint.admit([view], [Commit(0, frontier, token)]):
            if isinstance(one, Commit):
                canvas.commit(one.slot, one.token, tokens.eog_id)
            else:
                canvas.remask(one.slot)
    verdict = constraint.finish([canvas.view(None)], truncate=not canvas.closed)
    return verdict.fills[0] if verdict.fills is not None else None


# Each of these files has a statement, a branch or a header that the grammar cannot read; the compilers can.
NEWER = load("newer_syntax")


@pytest.mark.parametrize("case", NEWER)
def test_a_fill_beside_newer_syntax_is_what_the_model_writes(tokens: SmallTokens, case: Case) -> None:
    (wanted,) = case.takes
    assert written(tokens, case, wanted) == wanted


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("javascript", 'define(a, "b", <|>\nclass A \n  b() {\n  }\n}\n'),
        ("javascript", "if (a <|>\n  b();\n}\n"),
        ("json", '{"a": 1 <|>\n"b": 2}\n'),
        ("php", "<?php\nfunction f() {\n    return 1<|>    private $a = 2;\n}\n"),
        ("kotlin", "fun f(x: Int): Int {\n    return <|>\n}\n"),
    ],
)
def test_nothing_is_left_out_where_the_fill_may_mend_the_file(name: str, marked: str) -> None:
    text, place = split(marked)
    part = spared_part(text, (place, place), require(name), in_line=False)
    assert part is None


def test_only_what_the_grammar_cannot_read_is_left_out() -> None:
    text, place = split(
        "fun a(): Int {\n    return 1\n}\n\ncontext(l: Log)\nfun b() {}\n\nfun c(): Int {\n    return <|>\n}\n"
    )
    part = spared_part(text, (place, place), require("kotlin"), in_line=True)
    assert part is not None
    assert part.document is not None
    assert b"fun a()" in part.text
    assert b"context" not in part.text
    assert parses(part.text[: part.gap[0]] + part.neutral + part.text[part.gap[1] :], require("kotlin"))


def test_a_fill_of_a_part_may_add_no_error_to_the_whole() -> None:
    text, place = split(
        "class A {\n  void f(A& o)\n  <|>\n\n  void g(int s)\n  { m =  = s; }\n\n  inline int h(int s) const\n"
        "  { return s; }\n\n  int m;\n};\n"
    )
    part = spared_part(text, (place, place), require("cpp"), in_line=True)
    assert part is not None
    assert part.adds_error is not None
    assert [part.adds_error(fill) for fill in (b"{ f(o); }", b"a b*******")] == [False, True]


@pytest.mark.parametrize("name", [one.name for one in LANGUAGES if not one.columns and one.name != "csharp"])
@settings(max_examples=8, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 200))
def test_nothing_is_left_out_of_a_file_that_has_a_valid_fill(
    samples: Samples, tokens: SmallTokens, name: str, seed: int
) -> None:
    language, text = samples[name]
    hollow, regions, _ = cut(text, tokens, seed, 1, 12)
    part = spared_part(hollow, (regions[0].start, regions[0].end), language, in_line=False)
    assert part is None or part.document is None, hollow[regions[0].start - 60 :][:120]
