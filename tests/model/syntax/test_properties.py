"""The properties a constraint promises, over all languages."""

import os
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lacuna_model.core.constraint import Constraint, Taken
from lacuna_model.core.params import Region
from lacuna_model.syntax import LANGUAGES, Language, SyntaxConstraint, constraint_for, parses
from lacuna_model.syntax.document import Document

from .conftest import SmallTokens
from .drive import certain, fill, noisy

PARTIALS = int(os.environ.get("LACUNA_PARTIALS", "8"))  # per language; 10,000 for the full run
Samples = dict[str, tuple[Language, bytes]]
NAMES = [language.name for language in LANGUAGES]
# The same examples at every run: a new one in a thousand shows a weakness, and belongs to a full run.
PROPERTY = settings(
    max_examples=PARTIALS,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    database=None,
    derandomize="LACUNA_PARTIALS" not in os.environ,
)


def cut(
    text: bytes, tokens: SmallTokens, seed: int, gaps: int, slots: int
) -> tuple[bytes, list[Region], list[list[int]]]:
    """Cuts random gaps between tokens; returns the text without them, their regions and the removed tokens."""
    ids = tokens.encode(text.decode())
    rng = np.random.default_rng(seed)
    share = len(ids) // gaps
    pieces, regions, truths, size, position = [], [], [], 0, 0
    for gap in range(gaps):
        start = int(rng.integers(gap * share, max((gap + 1) * share - slots, gap * share + 1)))
        end = min(start + int(rng.integers(0, slots + 1)), (gap + 1) * share)
        start, end = character_start(ids, tokens, start), character_start(ids, tokens, end)
        pieces.append(tokens.decode_bytes(ids[position:start]))
        size += len(pieces[-1])
        regions.append(Region(size, size, max_tokens=max(end - start, 4)))
        truths.append(ids[start:end])
        position = end
    pieces.append(tokens.decode_bytes(ids[position:]))
    return b"".join(pieces), regions, truths


def character_start(ids: list[int], tokens: SmallTokens, place: int) -> int:
    """The first index from ``place`` on at which no character is split."""
    while place < len(ids) and tokens.token_bytes(ids[place])[0] & 0xC0 == 0x80:
        place += 1
    return place


def filled(text: bytes, regions: list[Region], fills: tuple[str, ...]) -> bytes:
    parts, offset = [], 0
    for region, fill_text in zip(regions, fills, strict=True):
        parts += [text[offset : region.start], fill_text.encode()]
        offset = region.end
    return b"".join([*parts, text[offset:]])


@pytest.mark.parametrize("name", NAMES)
@PROPERTY
@given(seed=st.integers(0, 2**32))
def test_a_true_fill_is_delivered(samples: Samples, tokens: SmallTokens, name: str, seed: int) -> None:
    language, text = samples[name]
    hollow, regions, truths = cut(text, tokens, seed, 1, 12)
    constraint = SyntaxConstraint(hollow, regions, language, tokens)

    def nothing_refused(asked: Constraint, fills: object, taken: Taken) -> None:
        assert not taken.stuck
        assert asked.stats.vetoes == 0

    rng = np.random.default_rng(seed)
    model, budgets = certain(truths, tokens.eog_id), [region.max_tokens for region in regions]
    verdict = fill(constraint, model, budgets, tokens.eog_id, rng=rng, watch=nothing_refused)
    assert verdict.fills is not None
    assert filled(hollow, regions, verdict.fills) == text


def test_true_fills_of_several_gaps_are_seldom_lost(samples: Samples, tokens: SmallTokens) -> None:
    """A gap may be refused if the others hold what makes sense of it, such as the other half of a string."""
    lost = list[tuple[str, int]]()
    for name, seed in product(NAMES, range(4)):
        language, text = samples[name]
        hollow, regions, truths = cut(text, tokens, seed, 3, 12)
        constraint = SyntaxConstraint(hollow, regions, language, tokens)
        model, budgets = certain(truths, tokens.eog_id), [region.max_tokens for region in regions]
        verdict = fill(constraint, model, budgets, tokens.eog_id, rng=np.random.default_rng(seed))
        if verdict.fills is None or filled(hollow, regions, verdict.fills) != text:
            lost.append((name, seed))
    assert len(lost) <= 0.05 * 4 * len(NAMES), lost


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("noise", [0.2, 1.0])
@settings(PROPERTY, max_examples=max(PARTIALS // 4, 3))
@given(seed=st.integers(0, 2**32), gaps=st.integers(1, 3))
def test_a_bad_model_leads_to_a_valid_file_or_no_fill(
    samples: Samples, tokens: SmallTokens, name: str, noise: float, seed: int, gaps: int
) -> None:
    language, text = samples[name]
    hollow, regions, truths = cut(text, tokens, seed, gaps, 12)
    constraint = SyntaxConstraint(hollow, regions, language, tokens)
    rng = np.random.default_rng(seed)
    model = noisy(truths, tokens, rng, noise)
    budgets = [region.max_tokens for region in regions]
    verdict = fill(constraint, model, budgets, tokens.eog_id, rng=rng)
    if verdict.status == "no_valid_fill":
        assert verdict.fills is None
        assert "no valid fill" in verdict.message
        return
    assert verdict.fills is not None
    assert parses(filled(hollow, regions, verdict.fills), language)


@pytest.mark.parametrize("name", NAMES)
@PROPERTY
@given(seed=st.integers(0, 2**32), gaps=st.integers(1, 3))
def test_a_fresh_check_says_the_same(samples: Samples, tokens: SmallTokens, name: str, seed: int, gaps: int) -> None:
    language, text = samples[name]
    hollow, regions, truths = cut(text, tokens, seed, gaps, 12)
    spans = [(region.start, region.end) for region in regions]
    document = Document(hollow, spans, language)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        fills = [tokens.decode_bytes(truth[: int(rng.integers(0, len(truth) + 1))]) for truth in truths]
        if any(not valid_utf8(text) for text in fills):
            continue
        assert bool(document.check(fills)) == bool(document.check_fresh(fills))
    true_fills = [tokens.decode_bytes(truth) for truth in truths]
    assert not document.check(true_fills)
    assert not document.check_fresh(true_fills)


def valid_utf8(text: bytes) -> bool:
    return text.decode(errors="replace").encode() == text


def test_unknown_language_is_unconstrained(tokens: SmallTokens) -> None:
    constraint = constraint_for(b"a ( b", [Region(1, 1)], "notes.xyz", "", tokens, syntax=True)
    assert not constraint.active
    assert not constraint.active


def test_syntax_off_is_unconstrained(tokens: SmallTokens) -> None:
    assert not constraint_for(b"x = ", [Region(4, 4)], "a.py", "", tokens, syntax=False).active
