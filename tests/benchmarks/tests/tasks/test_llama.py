import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmarks.tasks.llama import INSTALL, NUM_DRAFTED, LlamaCpp
from tests.benchmarks.tests.fakes import write_llama_cpp
from tests.model import gguf_files
from tests.model.fim import tiny_fim

from lacuna_model.core.errors import LacunaError

ROOT = Path(__file__).parents[4]


@pytest.fixture
def gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model file for the fake llama-cpp-python, which generates fixed tokens."""
    monkeypatch.syspath_prepend(write_llama_cpp(tmp_path / "packages"))
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    path.with_suffix(".says").write_text("[7, 8, 9, 2, 7, 7]")
    return path


def logged_calls(gguf: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in gguf.with_suffix(".log").read_text().splitlines()]


def test_a_prompt_is_continued_greedily_up_to_an_end_token_or_the_limit(gguf: Path) -> None:
    llama = LlamaCpp(gguf, threads=3, num_context=512)
    assert llama.generate([1, 2, 3], 9, frozenset({2, 9})) == [7, 8, 9]
    assert llama.generate([1, 2, 3], 2, frozenset({2})) == [7, 8]
    assert llama.generate([4], 5) == [7, 8, 9, 2, 7]
    assert llama.compiled_for == "CPU : AVX2 = 1 | FMA = 1"
    loaded, *asked = logged_calls(gguf)
    assert loaded == {
        "n_ctx": 512, "n_threads": 3, "n_threads_batch": 3, "logits_all": False, "verbose": False, "drafts": None,
    }  # fmt: skip
    assert asked == [{"prompt": prompt, "temp": 0.0} for prompt in ([1, 2, 3], [1, 2, 3], [4])]


def test_ngrams_turn_on_the_drafts_of_llama_cpp(gguf: Path) -> None:
    LlamaCpp(gguf, ngrams=True)
    (loaded,) = logged_calls(gguf)
    assert (loaded["drafts"], loaded["logits_all"]) == (NUM_DRAFTED, True)


def test_a_file_that_cannot_be_loaded_is_named(gguf: Path) -> None:
    gguf.write_bytes(b"not one")
    with pytest.raises(LacunaError, match=rf"^llama\.cpp cannot load {gguf}: .+$"):
        LlamaCpp(gguf)


def test_without_llama_cpp_one_line_says_how_to_install_it(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(LacunaError) as raised:
        LlamaCpp(gguf)
    assert str(raised.value) == f"llama.cpp is not installed; run: {INSTALL}"


@pytest.mark.parametrize("drafts", ["", "n-grams", "of a model"])
def test_the_real_llama_cpp_generates_the_best_tokens_of_the_model(tmp_path: Path, drafts: str) -> None:
    pytest.importorskip("llama_cpp", reason="it compiles for minutes, so that no extra of the tests has it")
    model = tiny_fim.loaded()
    file = gguf_files.write_fim(tmp_path / "tiny.gguf")
    llama = LlamaCpp(file, threads=1, ngrams=drafts == "n-grams", drafting=file if drafts == "of a model" else None)
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
