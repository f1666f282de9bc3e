from collections.abc import Callable

import numpy as np
import pytest

from lacuna_model.evaluate.baseline import HealedStart, LeftToRight, after_as_comment, before_only
from lacuna_model.params import InfillRequest, InfillResult, Region

from .fakes import ByteTokens, Scripted

BEFORE = "def f(x):\n"
AFTER = "    return y\n"


def fill(
    script: Callable[[str], str], *merged: str, before: str = BEFORE, after: str = AFTER, max_tokens: int = 200
) -> tuple[InfillResult, Scripted]:
    tokens = ByteTokens(*merged)
    model = Scripted(tokens, script)
    gap = len(before.encode())
    request = InfillRequest(text=before + after, regions=(Region(gap, gap, max_tokens=max_tokens),))
    return LeftToRight("base-left", model, tokens, before_only).fill(request), model


def test_a_fill_ends_where_the_model_repeats_the_text_after_the_gap() -> None:
    result, _ = fill(lambda _: "\n    y = 'é'\n    return y\n    return z\n")
    assert result.fills == ("    y = 'é'\n",)
    assert result.text == BEFORE + "    y = 'é'\n" + AFTER


def test_a_fill_ends_at_end_of_text_and_at_its_bound() -> None:
    result, _ = fill(lambda _: "\n    y = x\n")
    assert result.fills == ("    y = x\n",)
    assert result.stats.tokens == len("    y = x\n")  # the delivered ones: the healed newline is not among them
    assert result.stats.nfe == result.stats.tokens + 2  # the healed newline, and the pass that ended the text
    bounded, _ = fill(lambda _: "\n    y = x\n    y = 1\n", max_tokens=8)
    assert bounded.stats.nfe == 8
    assert bounded.fills == ("    y =",)


def test_the_text_after_the_gap_is_not_seen_by_the_baseline_without_it() -> None:
    _, model = fill(lambda _: "\n")
    assert model.prompts == [BEFORE.removesuffix("\n")]


def test_the_text_after_the_gap_stands_on_top_as_a_comment() -> None:
    layout = after_as_comment(BEFORE, "\n" + AFTER, "python")
    assert layout.endswith(BEFORE)
    assert "#     return y\n" in layout
    assert "//     return y\n" in after_as_comment(BEFORE, "\n" + AFTER, "go")
    assert after_as_comment(BEFORE, "\n", "python") == BEFORE


def test_the_last_token_before_the_gap_is_healed() -> None:
    # The prompt ends in "\n", but the natural token is "\n    ": only healing lets the model choose it.
    result, model = fill(lambda _: "\n    y = x\n    return y\n", "\n    ", after=AFTER)
    assert model.prompts == ["def f(x):"]
    assert result.fills == ("    y = x\n",)


def test_healing_allows_longer_tokens_and_beginnings() -> None:
    tokens = ByteTokens("\n  ", "\n    ", "\nx", "y\n")
    healed = HealedStart(tokens)
    texts = {tokens.token_bytes(int(i)) for i in healed.candidates(b"\n  ")}
    assert texts == {b"\n", b"\n  ", b"\n    "}
    assert {tokens.token_bytes(int(i)) for i in healed.candidates(b"\xff\xff")} == {b"\xff"}


def test_several_gaps_are_filled_in_order_each_seeing_the_earlier() -> None:
    tokens = ByteTokens()
    model = Scripted(tokens, lambda prompt: "1;" if "1" not in prompt else "2;")
    text = "a = ;\nb = ;\n"
    request = InfillRequest(text=text, regions=(Region(4, 4), Region(10, 10)))
    result = LeftToRight("base-left", model, tokens, before_only).fill(request)
    assert model.prompts[1].startswith("a =")
    assert result.fills[0] == "1"
    assert len(result.fills) == 2
    assert result.text.startswith("a = 1;\nb = ")


def test_a_long_prompt_keeps_its_end() -> None:
    tokens = ByteTokens()
    model = Scripted(tokens, lambda _: "")
    before = "x" * 50 + "y" * 10
    request = InfillRequest(text=before, regions=(Region(60, 60),))
    LeftToRight("base-left", model, tokens, before_only, context_tokens=9).fill(request)
    assert model.prompts == ["y" * 9]


@pytest.mark.parametrize("pending", [b"", b"a", b"\n "])
def test_candidates_are_unique_text_tokens(pending: bytes) -> None:
    tokens = ByteTokens("\n ", "ab")
    ids = HealedStart(tokens).candidates(pending)
    assert len(np.unique(ids)) == len(ids)
    assert not set(ids.tolist()) & tokens.special_ids
