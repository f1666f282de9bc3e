import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from tests.benchmarks.held_out.cases import SHAPES
from tests.benchmarks.held_out.main import held_out_main, measure
from tests.benchmarks.held_out.measure import ALL, Restored, restore, summarise
from tests.benchmarks.held_out.tables import HeldOutReport, Question, report, tables
from tests.benchmarks.held_out.texts import HeldOut, find_held_out, valid
from tests.benchmarks.tasks.records import Records
from tests.benchmarks.tests.fakes import Canned, write_llama_cpp
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim

from lacuna_model.backends import readers
from lacuna_model.core.errors import RequestError
from lacuna_model.tokens.tokenizer import Tokenizer
from training.stored.documents import Document, DocumentWriter
from training.stored.packages import CorpusError

TOKENIZER = Tokenizer(tiny_fim.VOCABULARY)
GO = "package a\n\n// A note\n" + "".join(
    f"func f{i}(n int) int {{\n\tvalue := n * {i}\n\treturn value + 1\n}}\n\n" for i in range(12)
)
RESULTS = msgspec.json.Decoder(Restored)
PACKAGE = "@us/shop"  # a scoped name, as in npm
QUESTION = Question("tiny", ("go", "python"), cases=3, seed=0)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, HeldOut]:
    texts = {"python": [2 * tiny.CODE, 2 * tiny.CODE.replace("Account", "Ledger")], "go": [GO, GO[:-3], "package b\n"]}
    for language, own in texts.items():
        with DocumentWriter(tmp_path / language / "held_out.jsonl.zst") as writer:
            for text in own:
                writer.write(Document(PACKAGE, "1", "MIT", "its own path", language, text))
    found = find_held_out(tmp_path)
    return {language: HeldOut(path, language) for language, path in found.items()}


def canned(name: str, answer: str = "x") -> Canned:
    return Canned(name, lambda *_: answer)


def results(files: dict[str, HeldOut], names: tuple[str, ...], path: Path | None = None) -> list[Restored]:
    with Records(path, QUESTION, RESULTS) as kept:
        return list(measure(QUESTION, files, [canned(name) for name in names], TOKENIZER.encode, kept))


def test_cases_of_every_language_parse_with_their_truths(files: dict[str, HeldOut]) -> None:
    for language, texts in files.items():
        cases = texts.cases(6, seed=1)
        assert cases == texts.cases(6, seed=1)
        assert [case.shape for case in cases] == [*SHAPES, *SHAPES]
        for case in cases:
            assert case.request.path.startswith(f"{language}/{PACKAGE}/")
            assert case.request.language == language
            assert valid(case.document(case.truths), language)
            assert not any("note" in truth for truth in case.truths)


def test_the_summary_tells_right_fills_from_half_right_ones(files: dict[str, HeldOut]) -> None:
    cases = files["go"].cases(6, seed=0)
    truths = {case.request.text: case.truths for case in cases}
    right, half = (_answering(truths, share) for share in (1, 2))
    restored = [restore(case, i, one, TOKENIZER.encode) for i, case in enumerate(cases) for one in (right, half)]
    matrix = summarise(restored)
    assert list(matrix["by 1"]) == [ALL, "go"]
    assert list(matrix["by 1"]["go"]) == [ALL, *SHAPES]
    whole, part = matrix["by 1"][ALL][ALL], matrix["by 2"][ALL][ALL]
    assert whole.exact == whole.exact_high == whole.similarity == whole.right == whole.syntax_valid == 1.0
    assert part.exact == part.exact_low == 0.0
    assert 0.3 < part.right < 0.9
    assert 0.3 < part.similarity < 0.9
    assert whole.gaps == sum(len(case.truths) for case in cases) > whole.cases == 6


def _answering(truths: dict[str, tuple[str, ...]], share: int) -> Canned:
    filler = canned(f"by {share}")
    answer = lambda request: Canned("", lambda _, i: _part(truths[request.text][i], share)).fill(request)  # noqa: E731
    filler.fill = answer  # type: ignore[method-assign]
    return filler


def _part(text: str, share: int) -> str:
    return text[: len(text) // share]


def test_an_interrupted_evaluation_is_resumed(files: dict[str, HeldOut], tmp_path: Path) -> None:
    path = tmp_path / "records"
    whole = results(files, ("lacuna", "llama.cpp"), path)
    data = path.read_bytes()
    assert len(whole) == len(data.splitlines()) - 1 == 2 * 3 * 2
    path.write_bytes(data[: len(data) // 2])
    again = results(files, ("lacuna", "llama.cpp"), path)
    assert _timeless(again) == _timeless(whole)
    # With a further engine, the recorded results of the others are reused.
    more = results(files, ("lacuna", "llama.cpp", "other"), path)
    assert len(more) == len(whole) + 6
    assert len(path.read_bytes().splitlines()) == 1 + len(more)


def _timeless(results: list[Restored]) -> list[Restored]:
    return [msgspec.structs.replace(one, ms=0.0) for one in results]


def test_the_report_has_tables(files: dict[str, HeldOut]) -> None:
    found = report(QUESTION, results(files, ("lacuna", "llama.cpp", "lacuna: one pass", "lacuna: 1 nat")))
    assert list(found.fills) == ["lacuna", "llama.cpp"]
    assert list(found.steps) == ["lacuna", "lacuna: one pass", "lacuna: 1 nat"]
    assert msgspec.json.decode(msgspec.json.encode(found), type=HeldOutReport) == found
    console = Console(width=160, file=io.StringIO())
    for table in tables(found):
        console.print(table)
    text = console.file.getvalue()
    for part in ("By shape", "By language", "Steps against quality", "llama.cpp", "python"):
        assert part in text


@pytest.mark.usefixtures("files")
def test_a_fim_model_is_compared_with_llama_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "load", lambda _: tiny_fim.loaded())
    monkeypatch.syspath_prepend(write_llama_cpp(tmp_path / "packages"))
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    gguf.with_suffix(".says").write_text(json.dumps([*TOKENIZER.encode("return value + 1"), TOKENIZER.eog_id]))
    found = held_out_main(tmp_path, str(gguf), cases=1, records=tmp_path / "records")
    assert found.question.languages == ("go", "python")
    assert {name: list(rows) for name, rows in found.fills.items()} == {
        name: [ALL, "go", "python"] for name in ("lacuna", "llama.cpp")
    }
    peer = found.fills["llama.cpp"][ALL][ALL]
    assert (peer.cases, peer.gaps) == (2, 2)
    assert peer.similarity > found.fills["lacuna"][ALL][ALL].similarity  # Lacuna's tiny model is random
    asked = [json.loads(line)["prompt"] for line in gguf.with_suffix(".log").read_text().splitlines()[1:]]
    assert {(prompt[0], prompt[-1]) for prompt in asked} == {(tiny_fim.FIM.prefix, tiny_fim.FIM.middle)}
    again = held_out_main(tmp_path, str(gguf), engines=["llama.cpp"], cases=1, records=tmp_path / "records")
    assert again == found  # recorded cases are not filled again


def test_bad_input_is_named(files: dict[str, HeldOut], tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"no held-out files here; `python -m training corpus` builds the corpus"):
        find_held_out(tmp_path / "none")
    with pytest.raises(RequestError, match=r"no held-out files of 'ada'; there are go, python"):
        find_held_out(tmp_path, ["ada"])
    file = tmp_path / "go" / "held_out.jsonl.zst"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CorpusError, match=r"go/held_out\.jsonl\.zst: the corpus file is damaged"):
        HeldOut(file, "go")
