"""Texts and tokens that mean nothing: every call returns, and what is delivered keeps the rules of its region."""

import numpy as np
import pytest
from tests.model.languages.test_parsing import ENDLESS
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import fill, noisy, require
from tests.model.syntax.test_properties import NAMES, Samples

from lacuna_model.core import work
from lacuna_model.core.constraint import FillSoFar
from lacuna_model.core.params import Region
from lacuna_model.core.work import Clock, OverBudgetError
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.constraint import CALL_SECONDS, SyntaxConstraint
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.judge import DECIDE_SECONDS
from lacuna_model.syntax.stand_ins import Others

ROOM = 16
MARKS = [
    b"{", b"}", b"(", b")", b'"', b"'", b"\n", b"    ", b"<", b"/*", b"*/", b"#", b"`", b"\\", b"\x00", b"\xff", b"end",
]  # fmt: skip
TWO_GAPS = (
    b"const title = 1;\nexport const Box = () => ; const a = ;\n",
    [Region(one, one, 2 * ROOM) for one in (42, 54)],
)
LONGEST = 4 * (CALL_SECONDS + DECIDE_SECONDS)  # of work: a search that is running ends at its next check of the clock


@pytest.mark.parametrize("ended", [True, False])
def test_fills_with_which_no_parse_ends_are_refused(tokens: SmallTokens, *, ended: bool) -> None:
    constraint = SyntaxConstraint(*TWO_GAPS, require("tsx"), tokens)
    endless = FillSoFar(tuple(tokens.encode(ENDLESS.decode())), 2 * ROOM, ended=True)
    other = FillSoFar(tuple(tokens.encode("1")), 2 * ROOM, ended=ended)
    verdict = constraint.verdict([endless, other], late=True)
    assert verdict.fills is None or "{{b" not in verdict.fills[0]


def test_beside_a_fill_with_which_no_parse_ends_no_other_is_found() -> None:
    others = Others(*TWO_GAPS, require("tsx"), Clock())
    assert not others.choose_again(0, ENDLESS, [False, False], ends=True)
    assert others.choose_again(0, b"[", [False, False], ends=False)


@pytest.mark.parametrize(("seed", "name"), list(enumerate(NAMES)))
def test_every_call_returns_whatever_the_text_is(samples: Samples, tokens: SmallTokens, seed: int, name: str) -> None:
    language, sample = samples[name]
    rng = np.random.default_rng(seed)
    pieces = [MARKS[rng.integers(len(MARKS))] if rng.random() < 0.4 else rng.bytes(3) for _ in range(30)]
    place = int(rng.integers(len(sample)))
    text = (b"".join(pieces[:15]) + sample[place : place + 200] + b"".join(pieces[15:])).decode(errors="replace")
    cuts = sorted(int(cut) for cut in rng.integers(0, len(text), 2))
    at = [len(text[:cut].encode()) for cut in cuts[: 1 + seed % 2]]
    regions = [Region(one, one, ROOM, single_line=not seed % 2) for one in at]
    began = work.spent()
    constraint = SyntaxConstraint(text.encode(), regions, language, tokens)
    ended = FillSoFar(tuple(rng.integers(1, tokens.vocab_size, 6).tolist()), ROOM, ended=True)
    constraint.may_end(0, ended)
    constraint.verdict([ended] * len(regions), late=True)
    constraint = SyntaxConstraint(text.encode(), regions, language, tokens)
    model = noisy([[]] * len(regions), tokens, rng, 1.0)
    verdict = fill(constraint, model, [ROOM] * len(regions), tokens.eog_id)
    for region, found in zip(regions, verdict.fills or (), strict=verdict.fills is not None):
        assert not (region.single_line and "\n" in found)
    assert work.spent() - began < LONGEST * 1e9 * 2 * ROOM


def test_a_text_whose_first_question_takes_too_long_is_not_checked_and_a_later_fill_is_refused(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(_text: bytes, *_: object) -> object:
        raise OverBudgetError("the text takes too long to check")

    region = [Region(4, 4, ROOM)]
    ended = FillSoFar(tuple(tokens.encode("x")), ROOM, ended=True)
    constraint = SyntaxConstraint(b"x = \n", region, require("python"), tokens)
    assert constraint.may_end(0, ended)
    monkeypatch.setattr(Document, "check_fresh", end)
    assert constraint.verdict([ended], late=False).status == "no_valid_fill"
    monkeypatch.setattr(Document, "check", end)
    monkeypatch.setattr(work, "AT_ONCE_NS", 0)
    with pytest.raises(UnparsableError, match="takes too long"):
        SyntaxConstraint(b"x = \n", region, require("python"), tokens).may_end(0, ended)
