"""Texts that are easy to get wrong: line ends, tabs, other scripts, gaps inside literals, broken files."""

import warnings

import numpy as np
import pytest
from tree_sitter import Parser

from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint, constraint_for, language_for
from lacuna_model.syntax.check.document import Document, parses
from lacuna_model.syntax.check.error_set import Splice, carried_over, tree_faults
from lacuna_model.text.characters import finish_character

from .cases import Case, load
from .conftest import SmallTokens
from .drive import certain, fill, noisy, require
from .test_constraint import filled

PYTHON = load("python_text")


def run(before: str, truth: str, after: str, tokens: SmallTokens, noise: float = 0.0, seed: int = 0) -> tuple[str, str]:
    text = (before + after).encode()
    start = len(before.encode())
    ids = tokens.encode(truth)
    region = Region(start, start, max_tokens=len(ids) + 6)
    language = language_for("a.py")
    assert language is not None
    constraint = SyntaxConstraint(text, [region], language, tokens)
    rng = np.random.default_rng(seed)
    model = noisy([ids], tokens, rng, noise) if noise else certain([ids], tokens.eog_id)
    verdict = fill(constraint, model, [region.max_tokens], tokens.eog_id, rng=rng)
    if verdict.fills is None:
        return verdict.status, ""
    return verdict.status, filled(text, [region], verdict.fills).decode()


@pytest.mark.parametrize("case", PYTHON)
def test_the_true_fill_is_delivered(tokens: SmallTokens, case: Case) -> None:
    (truth,) = case.takes or ("",)
    assert run(case.before, truth, case.after, tokens) == ("ok", case.before + truth + case.after)


@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize("case", PYTHON)
def test_a_noisy_model_gives_valid_python_or_no_fill(tokens: SmallTokens, case: Case, noise: float) -> None:
    (truth,) = case.takes
    for seed in range(3):
        status, text = run(case.before, truth, case.after, tokens, noise, seed)
        if status == "ok":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a random string may hold an odd escape
                compile(text.removeprefix("\ufeff"), "<filled>", "exec")
        else:
            assert status == "no_valid_fill"


def test_an_error_near_the_gap_does_not_prevent_a_fill(tokens: SmallTokens) -> None:
    before = "def f():\n    a = = 1\n    b = "
    status, text = run(before, "foo(2)", "\n    return b\n", tokens)
    assert (status, text) == ("ok", before + "foo(2)" + "\n    return b\n")


def test_indentation_is_checked() -> None:
    language = language_for("a.py")
    assert language is not None
    before, after = b"def f(x):\n    if x:\n", b"\n    return 1\n"
    document = Document(before + after, [(len(before), len(before))], language)
    good = [b"        y = 1", b"        y = 1\n        z = 2", b"        pass  # done"]
    empty = b"        def g(\n        ):"
    bad = [
        empty,
        b"    y = 1",
        b"        y = 1\n      z = 2",
        b"        # nothing",
        b"",
        b"        y = 1\n            z = 2",
    ]
    for text in good:
        assert document.check([text]).valid
    for text in bad:
        assert not document.check([text]).valid
        assert not document.check_fresh([text]).valid


def test_a_name_with_a_control_character_is_invalid() -> None:
    language = language_for(name="javascript")
    assert language is not None
    own = Document(b"let a = (1);\n", [(8, 8)], language)
    assert own.check_fresh([b"f"]).valid
    assert not own.check_fresh([b"\x7f"]).valid


def test_an_edit_shifts_the_faults_after_it_and_drops_those_within_it() -> None:
    language = language_for("a.js")
    assert language is not None
    text = b"let a = ;\nlet b = 1;\nlet c = = 2;\n"
    faults = tree_faults(Parser(language.grammar()).parse(text))
    gap = text.index(b"1;")
    moved = carried_over(faults, [Splice(gap, gap + 1, 5)])
    after = tree_faults(Parser(language.grammar()).parse(text.replace(b"1;", b"12345;")))
    assert after == moved
    assert carried_over(faults, [Splice(0, len(text), 3)]) <= {fault for fault in moved if fault.start == 0}


@pytest.mark.parametrize("lead", range(0xC2, 0xF5))
def test_every_lead_byte_can_be_finished(lead: int) -> None:
    (bytes([lead]) + finish_character(bytes([lead]))).decode()


def test_a_fill_continues_after_the_healed_text(tokens: SmallTokens) -> None:
    before, after = "x = fo", "\ny = 2\n"
    text = (before + after).encode()
    region = Region(len(before), len(before), max_tokens=12)
    language = language_for("a.py")
    assert language is not None
    ids = tokens.encode("foo(1)")
    for noise in (0.0, 1.0):
        constraint = SyntaxConstraint(text, [region], language, tokens)
        rng = np.random.default_rng(1)
        model = noisy([ids], tokens, rng, noise) if noise else certain([ids], tokens.eog_id)
        verdict = fill(constraint, model, [region.max_tokens], tokens.eog_id, prefixes=[b"fo"])
        assert verdict.fills is not None
        assert noise or verdict.fills == ("o(1)",)
        assert parses((before + verdict.fills[0] + after).encode(), language)


def test_no_name_is_made_up_where_the_fill_may_end_before_it(tokens: SmallTokens) -> None:
    before, after = "def f():\n    for a in b:\n", "\n        c()\n"
    text = (before + after).encode()
    constraint = SyntaxConstraint(text, [Region(len(before), len(before), max_tokens=40)], require("python"), tokens)
    model = certain([tokens.encode("        d()\n    return 1")], tokens.eog_id)
    assert fill(constraint, model, [40], tokens.eog_id).fills == ("        d()",)


def test_healed_brackets_belong_to_the_prefix(tokens: SmallTokens) -> None:
    """The tokens of a fill begin with a healed bracket. It belongs to the prefix; the fill must not count it."""
    pieces = [
        "entries.append(\n    Entry(\n        day=",
        ",\n        amount=Decimal(",
        "),\n        note=",
        ",\n    )\n)\n",
    ]
    starts = [len("".join(pieces[: gap + 1])) for gap in range(3)]
    text = "".join(pieces).encode()
    truths = ["3", "4", "a"]
    constraint = SyntaxConstraint(text, [Region(start, start) for start in starts], require("python"), tokens)
    prefixes = [text[start - 1 : start] for start in starts]
    known = certain(
        [tokens.encode(one.decode() + truth) for one, truth in zip(prefixes, truths, strict=True)], tokens.eog_id
    )
    verdict = fill(constraint, known, [16] * 3, tokens.eog_id, prefixes=prefixes)
    assert verdict.fills == tuple(truths)


def test_without_room_for_a_valid_fill_the_status_is_no_valid_fill(tokens: SmallTokens) -> None:
    text = b"def f(a, b"
    constraint = constraint_for(text, [Region(10, 10, max_tokens=1)], "a.py", "", tokens, syntax=True)
    model = noisy([[5]], tokens, np.random.default_rng(0), 1.0)
    verdict = fill(constraint, model, [1], tokens.eog_id)
    assert verdict.status == "no_valid_fill"
    assert verdict.fills is None
    assert "\n" not in verdict.message


# A comment begins before the gap, in a block. The suffix has other comments.
HALVES = (
    b"type A = {\n  /**\n   * a\n",
    b"""
};

/**
 * b
 */
export type B<
  C extends D<E, 'f'>,
> = C['f'] extends true
  ? A
  : G;

export function h(
  i:
    | B<{ a: false }>['j']
    | undefined,
): K {
  const k = i as L;
  if (!k) {
    return {
      m: {
        n: (o) => o,
        p: (o) => o,
      },
    };
  }
  if ('m' in k) {
    return k;
  }
  return {
    m: k,
    q: k,
  };
}
""",
)


def test_a_fill_must_end_a_comment_that_the_prefix_leaves_open(tokens: SmallTokens) -> None:
    """Otherwise it ends far into the suffix, and the errors after its end do not count as the file's own."""
    language = language_for(name="typescript")
    assert language is not None
    before, after = HALVES
    document = Document(before + after + before + b"   */" + after, [(len(before), len(before))], language)
    assert not document.check_fresh([b"   * c"]).valid
    assert document.check_fresh([b"   */"]).valid
