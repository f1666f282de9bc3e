import io
from pathlib import Path

import msgspec
import pytest
from lacuna_model.train.calibration import Bin
from lacuna_model.train.shards import ShardError, ShardWriter
from lacuna_model.train.validation import ValidationReport
from rich.console import Console
from tests.model import tiny

from lacuna_model.errors import RequestError
from lacuna_model.evaluate.held_out import ALL, restore, summarise
from lacuna_model.evaluate.held_out_cases import SHAPES, Case
from lacuna_model.evaluate.held_out_main import Result, held_out_engines, measure
from lacuna_model.evaluate.held_out_report import HeldOutReport, Question, SlotScores, report, tables
from lacuna_model.evaluate.held_out_texts import HeldOut, find_held_out, valid
from lacuna_model.evaluate.plots import draw
from lacuna_model.evaluate.records import Records
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.params import DecodeOptions
from lacuna_model.tokenizer import Tokenizer

from .fakes import Canned

TOKENIZER = Tokenizer(tiny.VOCABULARY)
GO = "package a\n\n// A note\n" + "".join(
    f"func f{i}(n int) int {{\n\tvalue := n * {i}\n\treturn value + 1\n}}\n\n" for i in range(12)
)
RESULTS = msgspec.json.Decoder(Result)
PACKAGE = "@us/shop"  # as npm names some
QUESTION = Question("tiny", "", ("go", "python"), cases=3, samples=12, seed=0)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, HeldOut]:
    texts = {"python": [2 * tiny.CODE, 2 * tiny.CODE.replace("Account", "Ledger")], "go": [GO, GO[:-3], "package b\n"]}
    for language, own in texts.items():
        with ShardWriter(tmp_path, f"held_out-{language}", TOKENIZER.fingerprint) as writer:
            for text in own:
                writer.write(writer.checked(TOKENIZER.encode(text), PACKAGE), language, PACKAGE)
    found = find_held_out(tmp_path)
    return {language: HeldOut(paths, language, TOKENIZER) for language, paths in found.items()}


def scores(language: str) -> ValidationReport:
    bins = (Bin(0.2, 8, 0.25, 0.5), Bin(0.9, 2, 0.95, 1.0))
    return ValidationReport(4, 10, 0.5, 2.0, 0.5, 2.0, 0.25, 3.0, 0.5, 1.8, 0.5, 0.25, 0.21, bins)


def canned(name: str, answer: str = "x") -> Canned:
    return Canned(name, lambda *_: answer)


def results(files: dict[str, HeldOut], names: tuple[str, ...], path: Path | None = None) -> list[Result]:
    with Records(path, QUESTION, RESULTS) as kept:
        return list(measure(QUESTION, files, [canned(name) for name in names], scores, TOKENIZER.encode, kept))


def test_gaps_are_cut_into_files_that_parse_in_every_language(files: dict[str, HeldOut]) -> None:
    for language, texts in files.items():
        cases = texts.cases(6, seed=1)
        assert cases == texts.cases(6, seed=1)
        assert [case.shape for case in cases] == [*SHAPES, *SHAPES]
        for case in cases:
            assert case.request.path.startswith(f"{language}/{PACKAGE}/")
            assert case.request.language == language
            assert valid(case.document(case.truths), language)
            assert not any("note" in truth for truth in case.truths)


def test_the_prior_knows_the_other_files_of_the_package(files: dict[str, HeldOut], model: LoadedFim) -> None:
    (case,) = files["python"].cases(1, seed=0)
    (segment,) = files["python"].segments(case.request)
    hidden = [name for name, counts in zip(segment.documents.names, segment.counts, strict=True) if not counts]
    assert hidden == [case.request.path]
    prior = held_out_engines(model, files)["prior"]()
    restored = restore(case, 0, prior, TOKENIZER.encode)
    # The other file is the same but for one name.
    assert restored.exact == (True,) or "Account" in case.truths[0] + case.request.text


def test_figures_of_right_and_half_right_fills(files: dict[str, HeldOut]) -> None:
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


def test_an_interrupted_evaluation_goes_on(files: dict[str, HeldOut], tmp_path: Path) -> None:
    path = tmp_path / "records"
    whole = results(files, ("lacuna", "base-left"), path)
    data = path.read_bytes()
    assert len(whole) == len(data.splitlines()) - 1 == 2 * (3 * 2 + 1)
    path.write_bytes(data[: len(data) // 2])
    again = results(files, ("lacuna", "base-left"), path)
    assert _timeless(again) == _timeless(whole)
    # Another engine beside them needs nothing of the others again.
    more = results(files, ("lacuna", "base-left", "prior"), path)
    assert len(more) == len(whole) + 6
    assert len(path.read_bytes().splitlines()) == 1 + len(more)


def _timeless(results: list[Result]) -> list[Result]:
    return [one if isinstance(one, SlotScores) else msgspec.structs.replace(one, ms=0.0) for one in results]


def test_the_report_has_tables_and_plots(files: dict[str, HeldOut], tmp_path: Path) -> None:
    found = report(QUESTION, results(files, ("lacuna", "base-left", "lacuna: one pass", "lacuna: 1 nat")))
    assert list(found.fills) == ["lacuna", "base-left"]
    assert list(found.steps) == ["lacuna", "lacuna: one pass", "lacuna: 1 nat"]
    assert found.slots.keys() == {"go", "python"}
    assert found.calibration_error == pytest.approx(0.21)
    assert msgspec.json.decode(msgspec.json.encode(found), type=HeldOutReport) == found
    console = Console(width=160, file=io.StringIO())
    for table in tables(found):
        console.print(table)
    text = console.file.getvalue()
    for part in ("By shape", "By language", "Steps against quality", "Slots", "base-left", "python", "21.0%"):
        assert part in text
    first, second = (draw(found, tmp_path / name) for name in ("one", "two"))
    assert [path.name for path in first] == ["steps.svg", "calibration.svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert b"</svg>" in one.read_bytes()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RequestError, match="cannot write plots"):
        draw(found, tmp_path / "file")


def test_our_engine_and_the_base_are_compared(files: dict[str, HeldOut], model: LoadedFim) -> None:
    engines = held_out_engines(model, files, {"lacuna: one pass": DecodeOptions(steps=1)})
    assert list(engines) == [
        "lacuna", "lacuna-unconstrained", "lacuna-candidates", "base-both-sides", "base-left", "prior",
        "lacuna: one pass",
    ]  # fmt: skip
    (case,) = files["go"].cases(1, seed=0)
    short = msgspec.structs.replace(case.request.regions[0], max_tokens=4)
    case = Case(
        case.shape, case.package, case.path, msgspec.structs.replace(case.request, regions=(short,)), case.truths
    )
    restored = {name: restore(case, 0, build(), TOKENIZER.encode) for name, build in engines.items()}
    assert {one.engine for one in restored.values()} == set(engines)
    assert restored["lacuna: one pass"].nfe <= restored["lacuna"].nfe
    assert all(one.tokens <= 8 for one in restored.values())


def test_bad_input_is_named(files: dict[str, HeldOut], tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no held-out shards here"):
        find_held_out(tmp_path / "none")
    with pytest.raises(RequestError, match=r"no held-out files of 'ada'; there are go, python"):
        find_held_out(tmp_path, ["ada"])
    shard = tmp_path / "held_out-go-00000.shard"
    shard.write_bytes(shard.read_bytes()[:-3])
    with pytest.raises(ShardError, match=r"held_out-go-00000\.shard: the shard is damaged"):
        HeldOut([shard], "go", TOKENIZER)
