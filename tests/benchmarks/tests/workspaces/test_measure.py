from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.workspaces import cases as workspace_cases
from tests.benchmarks.workspaces.cases import Held, draw_cases, fetch_packages, held, read_pins
from tests.benchmarks.workspaces.main import summarise, table, workspace_main
from tests.benchmarks.workspaces.measure import ARMS, Bench, Outcome
from tests.model import tiny

from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.fim.loading import LoadedFim
from training.sources.pypi import PyPI
from training.stored import packages as corpus_packages
from training.stored.packages import read_packages


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))


def package(name: str = "shop") -> Held:
    files = {f"{name}/m{i}.py": (2 * tiny.CODE).replace("Account", f"Account{i}") for i in range(3)}
    return held(name, files | {"tests/test_shop.py": 2 * tiny.CODE})


def test_no_package_of_this_evaluation_is_in_the_corpus() -> None:
    listed = read_packages(Path(corpus_packages.__file__).parents[1] / "packages.toml")
    known = {one.name.lower() for one in listed if one.source == "pypi"}
    pins = read_pins()
    assert len(pins) >= 8
    assert not known & {name.lower() for name in pins}
    assert all(len(pin.sha256) == 64 for pin in pins.values())


def test_a_file_other_than_the_pinned_one_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.whl").write_bytes(b"other")
    monkeypatch.setattr(PyPI, "fetch", lambda *args: (tmp_path / "other.whl",))
    with pytest.raises(LacunaError, match="another file"):
        list(fetch_packages(tmp_path))


def test_gaps_are_cut_into_the_files_that_a_package_ships() -> None:
    packages = [package("a"), package("b")]
    cases = draw_cases(packages, 6, seed=1)
    assert cases == draw_cases(packages, 6, seed=1)
    assert [case.package for case in cases] == ["a", "b"] * 3
    assert [case.shape for case in cases] == ["line", "line", "lines", "lines", "gaps", "gaps"]
    assert not any(case.path.startswith("tests/") for case in cases)
    assert workspace_cases.PACKAGES.endswith(".toml")


def test_every_arm_fills_every_case_while_the_file_is_not_in_its_workspace(model: LoadedFim, tmp_path: Path) -> None:
    shop = package()
    cases = draw_cases([shop], 3, seed=0)
    outcomes = []
    for one in Bench(model, tmp_path / "work").run([shop], cases, ARMS):
        outcomes.append(one)
        assert not (tmp_path / "work" / "shop" / one.path).exists()
    assert [(one.arm, one.shape) for one in outcomes] == [(arm, case.shape) for case in cases for arm in ARMS]
    assert {path.name for path in (tmp_path / "work" / "shop" / "shop").iterdir()} == {"m0.py", "m1.py", "m2.py"}
    assert all(len(one.fills) == len(one.truths) == len(one.exact) for one in outcomes)
    assert all(0 <= share <= 1 for one in outcomes for share in (*one.right, *one.similarity))


def test_the_summary_has_figures_by_arm_and_shape() -> None:
    def outcome(arm: str, shape: str, *, exact: bool, ms: float) -> Outcome:
        return Outcome(
            arm,
            0,
            "ok",
            shape,
            "p",
            "f.py",
            ("x",),
            ("x",),
            (exact,),
            (0.5,),
            (1.0,),
            tokens=4,
            nfe=2,
            ms=ms,
            encode_ms=1.0,
        )

    outcomes = [
        outcome("model", "line", exact=True, ms=3.0),
        outcome("model", "gaps", exact=False, ms=5.0),
        outcome("drafts", "line", exact=False, ms=1.0),
    ]
    report = summarise(outcomes, seed=4)
    assert list(report.arms) == ["model", "drafts"]
    assert list(report.arms["model"]) == ["all", "line", "gaps"]
    scores = report.arms["model"]["all"]
    assert (scores.cases, scores.gaps, scores.exact, scores.right) == (2, 2, 0.5, 1.0)
    assert (scores.tokens_per_pass, scores.nfe, scores.ms_p50, scores.decode_ms_p50) == (2.0, 2.0, 4.0, 3.0)
    assert table(report).row_count == 5


def test_the_command_prints_json_and_keeps_records(
    model: LoadedFim, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records.jsonl"
    report = workspace_main(model, [package()], arms=["drafts"], limit=2, records=records, as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out)["arms"]["drafts"]["all"]["cases"] == 2
    kept = records.read_bytes().splitlines()[1:]
    assert [msgspec.json.decode(line, type=Outcome).arm for line in kept] == ["drafts"] * 2
    assert list(report.arms) == ["drafts"]
    with pytest.raises(RequestError, match="nobody"):
        workspace_main(model, [package()], arms=["nobody"])


def test_an_interrupted_evaluation_is_resumed(model: LoadedFim, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    whole = workspace_main(model, [package()], arms=["drafts"], limit=3, records=records, as_json=True)
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:-1]) + b'{"arm":"dra')
    again = workspace_main(model, [package()], arms=["drafts"], limit=3, records=records, as_json=True)
    assert again.arms["drafts"]["all"].cases == 3
    assert again.arms["drafts"]["all"].exact == whole.arms["drafts"]["all"].exact
    kept = [msgspec.json.decode(line, type=Outcome) for line in records.read_bytes().splitlines()[1:]]
    assert [one.number for one in kept] == [0, 1, 2]
    with pytest.raises(RequestError, match="another evaluation"):
        workspace_main(model, [package()], arms=["drafts"], limit=3, seed=1, records=records)
