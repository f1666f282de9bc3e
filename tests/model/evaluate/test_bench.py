import json
import time
from itertools import islice
from pathlib import Path

import pytest

from lacuna_model.errors import LacunaError
from lacuna_model.evaluate import bench as bench_module
from lacuna_model.evaluate.bench import BenchError, bench, bench_main, busy_core
from lacuna_model.evaluate.bench_contexts import Context, contexts
from lacuna_model.evaluate.bench_engines import FillerCompleter, LlamaCpp
from lacuna_model.evaluate.bench_report import Cell, Ratio, ratios
from lacuna_model.models import find, path

from .fakes import Canned


def words(text: str) -> list[int]:
    return [0] * len(text.split())


class Timed:
    """Takes a moment and remembers what it was asked."""

    def __init__(self, name: str, log: list[tuple[str, str, str, int]]) -> None:
        self.name = name
        self._log = log

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        self._log.append((self.name, context.before, typed, num_tokens))
        time.sleep(0.001)
        return num_tokens


def test_contexts_are_disjoint_real_code_of_about_the_asked_size() -> None:
    found = list(contexts(words, 300))
    assert found == list(contexts(words, 300))
    assert len(found) > 60
    assert len({one.before[:200] for one in found}) == len(found)
    for one in found:
        assert 250 <= len(words(one.before + one.after)) <= 400
        assert len(words(one.before)) > len(words(one.after)) > 0
    assert sum(len(one.line) >= 30 for one in found) > 0.9 * len(found)


def test_engines_take_turns_warm_on_one_text_and_cold_on_new_ones() -> None:
    log: list[tuple[str, str, str, int]] = []
    engines = [Timed("a", log), Timed("b", log)]
    cells = bench(engines, words, lengths=(4,), warm=3, cold=2)
    assert [name for name, *_ in log] == ["a", "b"] * (1 + 1 + 3 + 2)
    warm, cold = log[2:10], log[10:]
    assert len({before for _, before, _, _ in warm}) == 1
    assert [len(typed) for name, _, typed, _ in warm if name == "a"] == [0, 3, 6, 9]
    assert len({before for _, before, _, _ in cold}) == 2
    assert [(cell.engine, cell.state, cell.tokens, cell.runs) for cell in cells] == [
        ("a", "warm", 4, 3), ("b", "warm", 4, 3), ("a", "cold", 4, 2), ("b", "cold", 4, 2),
    ]  # fmt: skip


def test_ratios_say_how_many_times_as_long_the_peer_takes() -> None:
    cells = [Cell("a", "warm", 16, 9, 100.0, 200.0), Cell("b", "warm", 16, 9, 250.0, 300.0)]
    assert ratios(cells, "a", "b") == [Ratio("warm", 16, 2.5, 1.5)]


def test_another_number_of_tokens_is_refused() -> None:
    class Short(Timed):
        def complete(self, context: Context, typed: str, num_tokens: int) -> int:
            return num_tokens // 2

    with pytest.raises(BenchError, match="short generated 2 tokens where 4"):
        bench([Short("short", [])], words, lengths=(4,), warm=1, cold=1)


def test_an_infilling_engine_sees_both_sides_and_is_held_to_the_number_of_tokens() -> None:
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
    with busy_core():
        pass


def test_the_report_is_one_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench_module, "LlamaCpp", lambda *_, **__: Timed("llama.cpp", []))
    filler = Canned("lacuna", lambda *_: "x")
    bench_main(filler, words, Path("model.gguf"), lengths=(4, 8), warm=2, cold=1, busy=True, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["busy"] is True
    assert len(printed["cells"]) == 8
    assert [(one["state"], one["tokens"]) for one in printed["ratios"]] == [
        ("warm", 4), ("cold", 4), ("warm", 8), ("cold", 8),
    ]  # fmt: skip
    bench_main(filler, words, Path("model.gguf"), lengths=(4,), warm=1, cold=1)
    assert "llama.cpp" in capsys.readouterr().out


def test_llama_cpp_says_what_is_wrong_with_a_model(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    with pytest.raises(LacunaError, match="cannot load"):
        LlamaCpp(broken)


def test_llama_cpp_generates_exactly_the_number_asked_for() -> None:
    try:
        gguf = path(find("smollm2-135m"))
    except LacunaError as error:
        pytest.skip(str(error))
    context = next(islice(contexts(words, 60), 1))
    assert LlamaCpp(gguf).complete(context, "", 5) == 5
