"""llama.cpp as an engine: its process, its prompt, and where its fills end."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.benchmarks.tasks.llama import LlamaFiller
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.tokenizer import Tokenizer

ROOT = Path(__file__).parents[4]
TOKENIZER = Tokenizer(tiny_fim.VOCABULARY)
MIDDLE = tiny_fim.FIM.middle


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
        self._script = script

    def generate(self, prompt: Sequence[int], max_tokens: int, ends: frozenset[int] = frozenset()) -> list[int]:
        asked = prompt.index(MIDDLE) + 1  # what follows is the part already generated
        said = TOKENIZER.encode(self._script(TOKENIZER.decode(prompt[:asked])))
        return [*said, *sorted(ends)[:1]][len(prompt) - asked :][:max_tokens]


def fills(script: Callable[[str], str], text: str, *gaps: int) -> tuple[str, ...]:
    request = InfillRequest(text, tuple(Region(at, at, 99) for at in gaps))
    return LlamaFiller(Continuing(script), TOKENIZER).fill(request).fills


@pytest.mark.parametrize(
    "said",
    [
        "    y = x\n    return y\n    return z\n",  # it repeats the suffix and continues
        "    y = x\n    return y\n",  # it ends with a repetition of the suffix
        "    y = x\ndef g(x):\n    pass\n",  # it leaves the block
    ],
)
def test_a_fill_is_cut_by_the_stop_rule_and_each_prompt_has_the_earlier_fills(said: str) -> None:
    assert fills(lambda _: said, "def f(x):\n    return y\n", 10) == ("    y = x\n",)
    assert fills(lambda prompt: "2" if "a = 1" in prompt else "1", "a = ;\nb = ;\n", 4, 10) == ("1", "2")
