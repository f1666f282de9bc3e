import json
import os
import time
from pathlib import Path

import pytest
from tests.benchmarks.engine.contexts import Context, contexts
from tests.benchmarks.engine.main import BenchError, bench, bench_main, busy_core
from tests.benchmarks.engine.peers import FillerCompleter, LlamaCompleter
from tests.benchmarks.engine.summary import Cell, Ratio, ratios
from tests.benchmarks.tasks.llama import NUM_DRAFTED
from tests.benchmarks.tests.fakes import Canned, Continuing, write_llama_cpp
from tests.model.fim import tiny_fim

from lacuna_model.tokens.tokenizer import Tokenizer


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


def test_contexts_are_disjoint_code_of_about_the_requested_size() -> None:
    found = list(contexts(words, 300))
    assert found == list(contexts(words, 300))
    assert len(found) > 60
    assert len({one.before[:200] for one in found}) == len(found)
    for one in found:
        assert 250 <= len(words(one.before + one.after)) <= 400
        assert len(words(one.before)) > len(words(one.after)) > 0
    assert sum(len(one.line) >= 30 for one in found) > 0.9 * len(found)


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


def test_a_ratio_is_the_time_of_the_fastest_peer_over_that_of_the_engine() -> None:
    cells = [
        Cell("a", "warm", 16, 9, 100.0, 200.0),
        Cell("b", "warm", 16, 9, 250.0, 300.0),
        Cell("c", "warm", 16, 9, 240.0, 500.0),
        Cell("b", "cold", 16, 9, 1.0, 1.0),
    ]
    assert ratios(cells, "a") == [Ratio("warm", 16, "c", 2.4, 2.5)]


def test_an_engine_that_generates_another_number_of_tokens_is_refused() -> None:
    class Short(Timed):
        def complete(self, context: Context, typed: str, num_tokens: int) -> int:
            return num_tokens // 2

    with pytest.raises(BenchError, match="short generated 2 tokens where 4"):
        bench([Short("short", [])], words, lengths=(4,), warm=1, cold=1)


def test_an_infilling_engine_gets_both_sides_and_the_exact_number_of_tokens() -> None:
    filler = Canned("lacuna", lambda *_: "x")
    context = next(contexts(words, 100))
    assert FillerCompleter(filler).complete(context, "ab", 16) == 16
    request = filler.requests[0]
    region = request.regions[0]
    assert request.text.encode()[: region.start].decode() == context.before + "ab"
    assert request.text.endswith(context.after)
    assert (region.min_tokens, region.max_tokens) == (16, 16)
    assert not request.options.syntax


def test_a_core_is_kept_busy_and_let_go() -> None:
    with busy_core() as pid:
        os.kill(pid, 0)  # it runs
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_llama_cpp_continues_the_same_text_by_the_requested_number_of_tokens() -> None:
    tokenizer = Tokenizer(tiny_fim.VOCABULARY)
    llama = Continuing(tokenizer, lambda _: "x" * 90)
    context = Context("def f():\n", "    return y\n", "    y = 1")
    assert LlamaCompleter("llama.cpp", llama, tokenizer.encode).complete(context, "    y", 40) == 40
    assert tokenizer.decode(llama.prompts[0]) == "def f():\n    return y\n    y"


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
