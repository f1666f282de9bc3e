from collections.abc import Callable

import pytest
from tests.benchmarks.tasks.llama_filler import LlamaFiller, trim_overlap
from tests.benchmarks.tests.fakes import Continuing
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.tokens.tokenizer import Tokenizer

TOKENIZER = Tokenizer(tiny_fim.VOCABULARY)
PREFIX, SUFFIX, MIDDLE = tiny_fim.FIM.prefix, tiny_fim.FIM.suffix, tiny_fim.FIM.middle
BEFORE = "def f(x):\n"
AFTER = "    return y\n"


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


def test_several_gaps_are_filled_in_order_and_each_prompt_has_the_earlier_fills() -> None:
    text = "a = ;\nb = ;\n"
    request = InfillRequest(text, (Region(4, 4), Region(10, 10)))
    result, llama = fill(lambda prompt: "2" if "a = 1" in prompt else "1", request)
    assert result.fills == ("1", "2")
    assert [TOKENIZER.decode(prompt) for prompt in llama.prompts] == [text, "a = 1;\nb = ;\n"]


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
