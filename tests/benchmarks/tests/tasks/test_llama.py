"""llama.cpp as an engine: its process, its prompt, and where its fills end."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.benchmarks.tasks.llama import LlamaCpp, LlamaFiller, trim_overlap
from tests.benchmarks.tests.fakes import write_llama_cpp
from tests.model import gguf_files
from tests.model.fim import tiny_fim

from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.tokenizer import Tokenizer

ROOT = Path(__file__).parents[4]
TOKENIZER = Tokenizer(tiny_fim.VOCABULARY)
PREFIX, SUFFIX, MIDDLE = tiny_fim.FIM.prefix, tiny_fim.FIM.suffix, tiny_fim.FIM.middle


def test_a_prompt_is_continued_up_to_an_end_token_or_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(write_llama_cpp(tmp_path / "packages"))
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF")
    gguf.with_suffix(".says").write_text("[7, 8, 9, 2, 7, 7]")
    llama = LlamaCpp(gguf)
    assert llama.generate([1, 2, 3], 9, frozenset({2, 9})) == [7, 8, 9]
    assert llama.generate([1, 2, 3], 2, frozenset({2})) == [7, 8]
    assert llama.compiled_for == "CPU : AVX2 = 1 | FMA = 1"
    gguf.write_bytes(b"not one")
    with pytest.raises(LacunaError, match=rf"^llama\.cpp cannot load {gguf}: .+$"):
        LlamaCpp(gguf)


def test_the_real_llama_cpp_generates_the_best_tokens_of_the_model(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp", reason="it compiles for minutes, so that no extra of the tests has it")
    model = tiny_fim.loaded()
    llama = LlamaCpp(gguf_files.write_fim(tmp_path / "tiny.gguf"), threads=1)
    for prompt in ([5, 9, 7, 30, 31, 9, 7], [5, 9, 7, 30, 31, 9, 8], [5, 9, 7, 30]):
        said = llama.generate(prompt, 12)
        reading = tiny_fim.plain_logits(model, [*prompt, *said])
        assert said == reading[len(prompt) - 1 : -1].argmax(-1).tolist()


def test_its_process_ends_with_a_killed_parent() -> None:
    start = (
        "import os, time\nfrom tests.benchmarks.tasks.llama import own_process\n"
        "if __name__ == '__main__':\n"
        "    process = own_process()\n"
        "    print(process.submit(os.getpid).result(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    assert int(parent.stdout.readline()) != parent.pid
    parent.kill()
    # Both processes have the other end of the pipe: it is closed when the last of them has ended.
    assert parent.communicate(timeout=60)[0] == ""


class Continuing:
    """Continues a prompt with ``script(text of the prompt)`` and an end token; the text leaves out special tokens."""

    def __init__(self, script: Callable[[str], str]) -> None:
        self.prompts: list[list[int]] = []
        self._script = script

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        self.prompts.append(list(prompt))
        asked = prompt.index(MIDDLE) + 1  # what follows is the part already generated
        said = TOKENIZER.encode(self._script(TOKENIZER.decode(prompt[:asked])))
        return [*said, *sorted(ends)[:1]][len(prompt) - asked :][:max_tokens]


def fill(script: Callable[[str], str], text: str, *gaps: int) -> tuple[InfillResult, Continuing]:
    llama = Continuing(script)
    return LlamaFiller(llama, TOKENIZER).fill(InfillRequest(text, tuple(Region(at, at, 99) for at in gaps))), llama


def test_the_prompt_is_prefix_suffix_middle_in_the_tokens_of_the_model() -> None:
    before, after = "x = '<|fim_middle|>é'\n", "y = x\n"
    _, llama = fill(lambda _: "", before + after, len(before.encode()))
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
    assert fill(lambda _: said, "def f(x):\n    return y\n", 10)[0].fills == ("    y = x\n",)


def test_several_gaps_are_filled_in_order_and_each_prompt_has_the_earlier_fills() -> None:
    text = "a = ;\nb = ;\n"
    result, llama = fill(lambda prompt: "2" if "a = 1" in prompt else "1", text, 4, 10)
    assert result.fills == ("1", "2")
    assert [TOKENIZER.decode(prompt) for prompt in llama.prompts] == [text, "a = 1;\nb = ;\n"]


@pytest.mark.parametrize(
    ("fill", "after", "expected"),
    [
        ("    y = x\n    return y\n", "    return y\n", "    y = x\n"),
        ("y = x\n    return y", "\n    return y", "y = x"),
        ("a, b)", ")", "a, b"),
        ("x", "", "x"),
    ],
)
def test_an_end_that_repeats_the_suffix_is_trimmed(fill: str, after: str, expected: str) -> None:
    assert trim_overlap(fill, after) == expected
