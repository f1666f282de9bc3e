import json
import time
from pathlib import Path

import pytest
from tests.benchmarks.engine.contexts import Context
from tests.benchmarks.engine.main import bench, bench_main
from tests.benchmarks.tasks.llama import NUM_DRAFTED
from tests.benchmarks.tests.fakes import Canned, write_llama_cpp


def words(text: str) -> list[int]:
    return [0] * len(text.split())


class Timed:
    """A fake engine that takes a millisecond for each call and logs the call."""

    def __init__(self, name: str, log: list[tuple[str, str, str, int]]) -> None:
        self.name = name
        self._log = log

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        self._log.append((self.name, context.before, typed, num_tokens))
        time.sleep(0.001)
        return num_tokens

    def rest(self, context: Context) -> None:
        self._log.append((self.name, context.before, "", 0))


def test_engines_take_turns_on_one_text_if_warm_and_on_new_texts_if_cold() -> None:
    log: list[tuple[str, str, str, int]] = []
    engines = [Timed("a", log), Timed("b", log)]
    cells = bench(engines, words, lengths=(4,), warm=3, cold=2)
    assert [name for name, *_ in log] == [*"ab", *"aabb", *"ab" * (3 + 2)]
    warm, cold = [entry for entry in log[2:12] if entry[3]], log[12:]
    assert [name for name, *_, tokens in log if not tokens] == ["a", "b"]  # both rest once, when the context is read
    assert len({before for _, before, _, _ in warm}) == 1
    assert [len(typed) for name, _, typed, _ in warm if name == "a"] == [0, 1, 2, 3]
    assert len({before for _, before, _, _ in cold}) == 2
    assert [(cell.engine, cell.state, cell.tokens, cell.runs) for cell in cells] == [
        ("a", "warm", 4, 3), ("b", "warm", 4, 3), ("a", "cold", 4, 2), ("b", "cold", 4, 2),
    ]  # fmt: skip


def test_the_json_report_is_one_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(write_llama_cpp(tmp_path / "packages"))
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF")
    gguf.with_suffix(".says").write_text(json.dumps([5] * 99))
    filler = Canned("lacuna", lambda *_: "x")
    bench_main(filler, words, gguf, lengths=(4, 8), warm=2, cold=1, busy=True, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["busy"] is True
    assert printed["llama_cpp"] == "CPU : AVX2 = 1 | FMA = 1"
    assert len(printed["cells"]) == 2 * 2 * 3
    assert [(one["state"], one["tokens"]) for one in printed["ratios"]] == [
        ("warm", 4), ("cold", 4), ("warm", 8), ("cold", 8),
    ]  # fmt: skip
    log = [json.loads(line) for line in gguf.with_suffix(".log").read_text().splitlines()]
    assert [one["drafts"] for one in log if "drafts" in one] == [None, NUM_DRAFTED]
    monkeypatch.setenv("COLUMNS", "160")
    bench_main(filler, words, gguf, lengths=(4,), warm=1, cold=1)
    assert "llama.cpp, n-grams" in capsys.readouterr().out
