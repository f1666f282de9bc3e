from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.model import tiny

from lacuna_model.canvas import Canvas
from lacuna_model.context import Layout, lay_out
from lacuna_model.ending import best_others
from lacuna_model.prior.canvas_prior import CanvasPrior, Draft, Says, beside, mix
from lacuna_model.prior.index import Documents, Segment
from lacuna_model.prior.line_above import LineAbove
from lacuna_model.prior.proposal import Proposal
from lacuna_model.prior.spans import Spoken
from lacuna_model.prior.suffix_array import token_type
from lacuna_model.prior.weights import MixtureWeights, fitted, weight
from lacuna_model.rows import Rows
from lacuna_model.tokenizer import Tokenizer

NEVER = (-50.0, *[0.0] * 6)
SURE = MixtureWeights(
    draft=(9.0, 0, 0, 0, 0),
    guided=(9.0, 0, 0, 0, 0),
    right=(9.0, 0, 0, 0, 0),
    ends=(0, 0.5, *[1.0] * 5),
    spans=NEVER,
    spoken=(0.0, 1.0, 1.0, 1.0),
    drafted_end=(0.0, 1.0),
    guided_end=(0.0, 1.0, 1.0),
)
SPANS = msgspec.structs.replace(SURE, spans=(9.0, *[0.0] * 6))
EOG, VOCABULARY = tiny.VOCABULARY.eog_id, len(tiny.VOCABULARY.tokens)
BEFORE, SPAN, AFTER = "def total(values):\n    value", " = 0\n    for x in values", ":\n        print(x)\n"


def laid_out(tokenizer: Tokenizer, *texts: str) -> Layout:
    return lay_out(texts, tokenizer, reserve=lambda _: 64, hole=64)


def prior(
    tokenizer: Tokenizer,
    layout: Layout,
    known: str,
    weights: MixtureWeights = SURE,
    above: Sequence[LineAbove] = (),
) -> CanvasPrior:
    kind = token_type(tokenizer.vocab_size)
    segment = Segment(Documents.index({"known.py": tokenizer.encode(known)}, kind))
    return CanvasPrior([segment], layout, eog_id=tokenizer.eog_id, weights=weights, above=above)


def canvas_of(layout: Layout, size: int = 24) -> Canvas:
    canvas = Canvas(layout.gaps[0], size, size)
    canvas.open_block()
    return canvas


def restricted(tokenizer: Tokenizer, canvas: Canvas) -> torch.Tensor:
    """Logits of a model that knows nothing but that the first token begins with the healed text."""
    rows = torch.zeros((len(canvas.slots), tokenizer.vocab_size))
    prefix = canvas.gap.prefix
    for token in range(tokenizer.vocab_size):
        if not tokenizer.token_bytes(token).startswith(prefix):
            rows[0, token] = -1e4
    return rows


def agrees(_canvas: Canvas, runs: Sequence[Sequence[int]]) -> list[Spoken]:
    """A base that would write whatever it is asked about."""
    return [Spoken(0.0, 0.0)] * len(runs)


def drafted(prior: CanvasPrior, canvas: Canvas, logits: torch.Tensor, says: Says = agrees) -> Draft:
    """The draft from logits [B, V] of which no end is likely."""
    rows = logits.log_softmax(-1)
    return prior.draft(canvas, Rows(rows), best_others(rows, EOG), says)


def test_a_span_that_the_project_has_is_drafted_to_its_end(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = canvas_of(layout)
    draft = drafted(prior(tokenizer, layout, BEFORE + SPAN + AFTER), canvas, restricted(tokenizer, canvas))
    length = draft.tokens.index(tokenizer.eog_id)
    assert tokenizer.decode(draft.tokens[:length]) == (canvas.gap.prefix.decode() + SPAN)
    assert all(proposal is not None for proposal in draft.proposals[: length + 1])


def test_the_project_says_that_a_fill_goes_on(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = canvas_of(layout)
    rows = restricted(tokenizer, canvas).log_softmax(-1)
    rows[0, tokenizer.eog_id] = 0.5  # the canvas side would rather end at once
    assert drafted(prior(tokenizer, layout, ""), canvas, rows).tokens[0] == tokenizer.eog_id
    going_on = drafted(prior(tokenizer, layout, BEFORE + SPAN + AFTER), canvas, rows).tokens[0]
    assert tokenizer.token_bytes(going_on).startswith(canvas.gap.prefix)
    assert going_on != tokenizer.eog_id


def test_a_likely_span_settles_its_slots_and_the_end(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = canvas_of(layout)
    known = prior(tokenizer, layout, BEFORE + SPAN + AFTER, SPANS)
    draft = drafted(known, canvas, restricted(tokenizer, canvas))
    span = [*tokenizer.encode(canvas.gap.prefix.decode() + SPAN), tokenizer.eog_id]
    assert draft.tokens[: draft.settled] == span
    assert [int(draft.rows[slot].argmax()) for slot in range(draft.settled)] == span


@pytest.mark.parametrize("weights", [SURE, SPANS], ids=["token by token", "as a span"])
def test_what_the_line_above_says_is_not_drafted(tokenizer: Tokenizer, weights: MixtureWeights) -> None:
    before, after = "for x in values:\n    print(x)\n", "\nprint(1)\n"
    layout = laid_out(tokenizer, before, after)
    canvas = canvas_of(layout)
    above = LineAbove(tokenizer, before.removesuffix(canvas.gap.prefix.decode()), after)
    fills = []
    for lines in ((), (above,)):
        known = prior(tokenizer, layout, f"{before}    print(x){after}", weights, lines)
        draft = drafted(known, canvas, restricted(tokenizer, canvas))
        fills.append(tokenizer.decode(draft.tokens[: draft.tokens.index(EOG) if EOG in draft.tokens else None]))
    copy = canvas.gap.prefix.decode() + "    print(x)"
    assert fills[0] == copy
    assert not fills[1].startswith(copy)


def test_a_span_that_the_base_would_not_write_is_passed_over_and_not_asked_about_again(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = canvas_of(layout)
    asked: list[str] = []

    def objects(_canvas: Canvas, runs: Sequence[Sequence[int]]) -> list[Spoken]:
        asked.extend(map(tokenizer.decode, runs))
        return [Spoken(-9.0, -12.0)] * len(runs)

    known = prior(tokenizer, layout, BEFORE + SPAN + AFTER, SPANS)
    for _ in range(2):
        assert drafted(known, canvas, restricted(tokenizer, canvas), objects).settled == 0
    assert asked == [canvas.gap.prefix.decode() + SPAN]


def test_a_span_is_followed_from_block_to_block_until_something_else_is_committed(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = Canvas(layout.gaps[0], 4, 40)
    canvas.open_block()
    known = prior(tokenizer, layout, BEFORE + SPAN + AFTER, SPANS)
    written: list[int] = []
    while not canvas.closed:
        draft = drafted(known, canvas, restricted(tokenizer, canvas) if not written else torch.zeros(4, VOCABULARY))
        assert draft.settled == 4 or draft.tokens[draft.settled - 1] == tokenizer.eog_id
        for slot, token in enumerate(draft.tokens[: draft.settled]):
            canvas.commit(slot, token, tokenizer.eog_id)
        written = canvas.tokens()
        if not canvas.closed:
            canvas.open_block()
    assert tokenizer.decode(written) == canvas.gap.prefix.decode() + SPAN
    other = Canvas(layout.gaps[0], 4, 40)
    other.open_block()
    other.slots[0] = tokenizer.encode("z")[0]
    assert drafted(known, other, torch.zeros(4, tokenizer.vocab_size)).settled == 0


def test_the_least_likely_span_is_taken_back_first_and_not_proposed_again(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER + BEFORE.replace("total", "sum"), AFTER)
    weights = msgspec.structs.replace(SPANS, spans=(-2.0, 1.0, 1.0, *[0.0] * 4))
    known = prior(tokenizer, layout, BEFORE + SPAN + AFTER, weights)
    assert not known.withdraw()
    canvases = [Canvas(gap, 24, 24) for gap in layout.gaps]
    for canvas in canvases:
        canvas.open_block()

    def settled() -> list[bool]:
        return [bool(drafted(known, canvas, restricted(tokenizer, canvas)).settled) for canvas in canvases]

    assert settled() == [True, True]
    assert known.withdraw()
    assert settled() == [True, False]  # the text before the second is another function's
    assert known.withdraw()
    assert settled() == [False, False]
    assert not known.withdraw()


def test_a_span_too_long_or_too_short_is_not_taken(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    known = prior(tokenizer, layout, BEFORE + SPAN + AFTER, SPANS)
    for budget, least in ((5, 0), (40, 40)):
        canvas = Canvas(layout.gaps[0], 4, budget, min_tokens=least)
        canvas.open_block()
        assert drafted(known, canvas, restricted(tokenizer, canvas)).settled == 0


def test_what_is_committed_is_followed(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = canvas_of(layout)
    span = tokenizer.encode(canvas.gap.prefix.decode() + SPAN)
    canvas.slots[:4] = span[:4]
    draft = drafted(prior(tokenizer, layout, BEFORE + SPAN + AFTER), canvas, torch.zeros(24, tokenizer.vocab_size))
    assert draft.tokens[4 : len(span)] == span[4:]
    assert draft.proposals[:4] == [None] * 4


def test_the_right_side_speaks_of_the_slot_before_it(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, "import", AFTER)  # nothing in front of the gap is known
    canvas = canvas_of(layout, 6)
    span = tokenizer.encode(" values")
    canvas.slots[-len(span) :] = span
    slot = len(canvas.slots) - len(span) - 1
    draft = drafted(prior(tokenizer, layout, "for x in values:\n"), canvas, torch.zeros(6, tokenizer.vocab_size))
    assert draft.rows[slot].argmax() == tokenizer.encode("for x in")[-1]


def test_what_is_ruled_out_stays_so(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = canvas_of(layout)
    rows = restricted(tokenizer, canvas)
    rows[:, tokenizer.eog_id] = -1e4  # as before the least length
    draft = drafted(prior(tokenizer, layout, BEFORE + SPAN + AFTER), canvas, rows)
    assert tokenizer.eog_id not in draft.tokens
    assert all(draft.rows[slot][tokenizer.eog_id] <= -1e3 for slot in range(len(canvas.slots)))
    assert tokenizer.token_bytes(draft.tokens[0]).startswith(canvas.gap.prefix)


def test_nothing_known_changes_nothing(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, BEFORE, AFTER)
    canvas = canvas_of(layout)
    rows = torch.randn((24, tokenizer.vocab_size), generator=torch.Generator().manual_seed(0))
    draft = drafted(prior(tokenizer, layout, ""), canvas, rows)
    assert not draft.rows.changed
    assert draft.proposals == [None] * 24


@given(
    st.lists(st.floats(-8, 8), min_size=6, max_size=6),
    st.dictionaries(st.integers(0, 5), st.floats(0.01, 1), min_size=1, max_size=4),
    st.floats(0, 0.99),
)
def test_mixing_is_a_weighted_mean(logits: list[float], shares: dict[int, float], share: float) -> None:
    row = torch.tensor(logits, dtype=torch.float64).log_softmax(-1)
    total = sum(shares.values())
    said = np.array([value / total for value in shares.values()])
    wanted = (1 - share) * row.exp().numpy()
    wanted[list(shares)] += share * said
    mix(row, Proposal(np.array(list(shares)), said, 3, 3), share)
    assert row.exp().numpy() == pytest.approx(wanted, abs=1e-6)


def test_texts_beside_gaps_end_at_their_neighbours(tokenizer: Tokenizer) -> None:
    texts = ["a = 1\nb", " = 2\nc", " = 3\n"]
    layout = laid_out(tokenizer, *texts)
    heads = [text.encode()[: -len(gap.prefix)] for text, gap in zip(texts, layout.gaps, strict=False)]
    assert [tokenizer.decode_bytes(beside(layout, i)[0]) for i in range(2)] == heads
    assert [tokenizer.decode_bytes(beside(layout, i)[1]) for i in range(2)] == [heads[1], texts[2].encode()]


def test_the_shipped_weights_trust_longer_and_purer_matches_more() -> None:
    weights = fitted()

    def trust(length: int, share: float) -> float:
        proposal = Proposal(np.array([1, 2]), np.array([share, 1 - share]), length, 2)
        return weight(weights.guided, proposal)

    assert 0 < trust(1, 0.5) < trust(8, 0.5) < trust(8, 1.0) < trust(30, 1.0) < 1
    assert all(0 <= rate <= 1 for rate in weights.ends)
    assert weights.ends[0] < weights.ends[1] < weights.ends[-1]
