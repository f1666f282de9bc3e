from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.tasks.llama_filler import PIECE_TOKENS, LlamaFiller, trim_overlap
from tests.benchmarks.tests.fakes import Continuing
from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult, Region, Snippet
from lacuna_model.tokens.tokenizer import Tokenizer

TOKENIZER = Tokenizer(tiny_fim.VOCABULARY)
PREFIX, SUFFIX, MIDDLE = tiny_fim.FIM.prefix, tiny_fim.FIM.suffix, tiny_fim.FIM.middle
BEFORE = "def f(x):\n"
AFTER = "    return y\n"
TEXTS = st.text(alphabet="ab: \n)", max_size=40)


def fill(script: Callable[[str], str], request: InfillRequest) -> tuple[InfillResult, Continuing]:
    llama = Continuing(TOKENIZER, script)
    return LlamaFiller("llama.cpp", llama, TOKENIZER).fill(request), llama


def gap(before: str = BEFORE, after: str = AFTER, max_tokens: int = 99, single_line: bool = False) -> InfillRequest:
    at = len(before.encode())
    return InfillRequest(before + after, (Region(at, at, max_tokens, single_line=single_line),))


def test_the_prompt_is_prefix_suffix_middle_in_the_tokens_of_the_model() -> None:
    before, after = "x = '<|fim_middle|>é'\n", "y = x\n"
    _, llama = fill(lambda _: "", gap(before, after))
    encode = TOKENIZER.encode
    # Text that looks like a special token is encoded as text.
    assert llama.prompts == [[PREFIX, *encode(before), SUFFIX, *encode(after), MIDDLE]]
    assert llama.prompts[0].count(MIDDLE) == 1


def test_snippets_come_first_in_the_repository_format_of_the_model() -> None:
    request = InfillRequest(
        BEFORE + AFTER, (Region(len(BEFORE), len(BEFORE)),), path="a.py", snippets=(Snippet("b.py", "y = 1"),)
    )
    _, llama = fill(lambda _: "", request)
    head, _, rest = TOKENIZER.decode(llama.prompts[0]).partition("b.py\ny = 1\n")
    assert (head, rest) == ("workspace\n", f"a.py\n{BEFORE}{AFTER}")


def test_a_fill_ends_with_the_end_token_of_the_model() -> None:
    result, _ = fill(lambda _: "    y = 'é'\n", gap())
    assert result.fills == ("    y = 'é'\n",)
    assert result.text == BEFORE + "    y = 'é'\n" + AFTER
    assert result.stats.tokens == len(TOKENIZER.encode("    y = 'é'\n"))
    assert result.stats.nfe == result.stats.tokens + 1  # one pass for the end token


def test_a_fill_ends_at_max_tokens() -> None:
    said = "    y = x\n"
    result, _ = fill(lambda _: said, gap(max_tokens=3))
    assert (result.fills, result.stats.nfe) == ((TOKENIZER.decode(TOKENIZER.encode(said)[:3]),), 3)


@pytest.mark.parametrize(
    "said",
    [
        "    y = x\n    return y\n    return z\n",  # it repeats the suffix and continues
        "    y = x\n    return y\n",  # it ends with a repetition of the suffix
        "    y = x\ndef g(x):\n    pass\n",  # it leaves the block
    ],
)
def test_a_fill_is_cut_by_the_stop_rule(said: str) -> None:
    assert fill(lambda _: said, gap())[0].fills == ("    y = x\n",)


def test_a_long_fill_is_complete_and_generation_stops_soon_after_a_cut() -> None:
    lines = "".join(f"    y = {number}\n" for number in range(20))
    assert len(TOKENIZER.encode(lines)) > 2 * PIECE_TOKENS
    assert fill(lambda _: lines, gap(max_tokens=999))[0].fills == (lines,)
    result, llama = fill(lambda _: "    y = x\n    return y\n" + lines, gap(max_tokens=999))
    assert result.fills == ("    y = x\n",)
    assert result.stats.nfe == len(llama.prompts) * PIECE_TOKENS < len(TOKENIZER.encode(lines))


def test_a_fill_without_the_end_that_repeats_the_suffix_is_given() -> None:
    # No complete line is repeated, so the stop rule does not apply.
    assert fill(lambda _: "a, b)", gap("x = f(", ")\n"))[0].fills == ("a, b",)


def test_the_fill_of_a_single_line_region_is_cut_to_one_line() -> None:
    request = gap("x = f(", ")\n", single_line=True)
    assert fill(lambda _: "1,\n2", request)[0].fills == ("1,",)


def test_several_gaps_are_filled_in_order_and_each_prompt_has_the_earlier_fills() -> None:
    text = "a = ;\nb = ;\n"
    request = InfillRequest(text, (Region(4, 4), Region(10, 10)))
    result, llama = fill(lambda prompt: "2" if "a = 1" in prompt else "1", request)
    assert result.fills == ("1", "2")
    assert result.text == "a = 1;\nb = 2;\n"
    assert [TOKENIZER.decode(prompt) for prompt in llama.prompts] == [text, "a = 1;\nb = ;\n"]


def test_of_a_long_file_the_prompt_has_only_the_text_around_the_gap() -> None:
    before, after = "x = 1\n" * 5000 + "y = 2\n", "z = 3\n" + "x = 4\n" * 5000
    _, llama = fill(lambda _: "", gap(before, after))
    (prompt,) = llama.prompts
    assert len(prompt) < 1500
    assert "x = 1\ny = 2\nz = 3\nx = 4\n" in TOKENIZER.decode(prompt)


def test_a_model_without_fim_tokens_and_a_region_outside_the_text_are_refused() -> None:
    with pytest.raises(RequestError, match=r"^llama\.cpp needs a model with fill-in-the-middle tokens$"):
        LlamaFiller("llama.cpp", Continuing(TOKENIZER, str), Tokenizer(tiny.VOCABULARY))
    with pytest.raises(RequestError, match="outside the text"):
        fill(str, InfillRequest("x", (Region(5, 5),)))


@pytest.mark.parametrize(
    ("fill", "after", "expected"),
    [
        ("    y = x\n    return y\n", "    return y\n", "    y = x\n"),
        ("y = x\n    return y", "\n    return y", "y = x"),
        ("    y = x\n", "\n    return y\n", "    y = x\n"),
        ("a, b)", ")", "a, b"),
        ("a, b", ")", "a, b"),
        ("x", "", "x"),
    ],
)
def test_an_end_that_repeats_the_suffix_is_trimmed(fill: str, after: str, expected: str) -> None:
    assert trim_overlap(fill, after) == expected


@given(fill=TEXTS, after=TEXTS)
def test_trimming_removes_only_an_end_that_begins_the_suffix(fill: str, after: str) -> None:
    trimmed = trim_overlap(fill, after)
    assert fill.startswith(trimmed)
    assert after.startswith(fill[len(trimmed) :])
