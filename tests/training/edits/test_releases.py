"""The releases of packages become files of examples; what is in the ledger is not made again."""

import shutil
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from lacuna_model.core.errors import NotPublishedError
from training.edits import releases
from training.edits.example import EditExample
from training.edits.releases import LEDGER, make, path_of, read_ledger
from training.sources.download import fetch
from training.sources.pypi import PyPI
from training.stored.documents import read_structs
from training.stored.packages import CorpusError, Package, Role

CODE = "\n\n".join(f"def {name}(value):\n    return value.{name} + value.other_{name}" for name in "abcdefgh") + "\n"


class Shelf(PyPI):
    """A registry whose packages are wheels of one module in a folder, of the versions 1, 2 and so on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()

    def add(self, name: str, *texts: str, licence: str = "MIT") -> None:
        for version, text in enumerate(texts, 1):
            with zipfile.ZipFile(self.folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
                about = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: {licence}\n"
                archive.writestr(f"{name}-{version}.dist-info/METADATA", about)
                archive.writestr(f"{name}/module.py", text)

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        wanted = package.version
        version = str(int(wanted[1:]) - 1) if wanted.startswith("<") else wanted
        wheel = self.folder / f"{package.name}-{version}-py3-none-any.whl"

        def get(files: Path) -> None:
            self.asked.append(f"{package.name} {version}")
            if not wheel.exists():
                raise NotPublishedError(wheel.name)
            shutil.copy(wheel, files)

        return fetch(package, folder, get)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "downloads").mkdir()
    found = Shelf(tmp_path / "shelf")
    changed = CODE.replace("def a(value", "def a(item").replace("return value.a + value.", "return item.a + item.")
    found.add("alpha", CODE, changed, changed.replace("b(value)", "b(thing)").replace("value.b", "thing.b"))
    found.add("beta", CODE, changed)
    found.add("gamma", CODE, changed, licence="GPL-3.0-only")
    return found


ALPHA = Package("shelf", "alpha", "3", Role.TRAIN)
BETA = Package("shelf", "beta", "2", Role.HELD_OUT)
GAMMA = Package("shelf", "gamma", "2", Role.TRAIN)


def test_the_last_releases_are_compared_and_recorded(shelf: Shelf, tmp_path: Path) -> None:
    shown: list[tuple[int, int, str]] = []
    found = make(
        [ALPHA, BETA, GAMMA],
        tmp_path,
        releases=3,
        sources={"shelf": shelf},
        progress=lambda *step: shown.append(step),
    )
    alpha, beta, gamma = found
    assert (alpha.versions, beta.versions) == (["3", "2", "1"], ["2", "1"])
    assert beta.dropped == {"not published": 1}
    assert (gamma.examples, gamma.dropped["licence of the package"]) == (0, 2)
    assert read_ledger(tmp_path / LEDGER) == found
    every = list(read_structs(path_of(tmp_path, ALPHA), EditExample))
    assert {one.new for one in every if one.follows} == {"def a(item):\n", "def b(thing):\n"}
    assert len(every) == alpha.examples
    assert path_of(tmp_path, BETA).parent.name == "held_out"
    assert not path_of(tmp_path, GAMMA).exists()
    assert shown[0] == (0, 3, "alpha 3")
    assert shown[-1] == (3, 3, "done")


def test_a_later_run_makes_what_the_ledger_lacks(shelf: Shelf, tmp_path: Path) -> None:
    make([BETA], tmp_path, releases=2, sources={"shelf": shelf})
    shelf.asked.clear()
    found = make([BETA, ALPHA], tmp_path, releases=2, sources={"shelf": shelf})
    assert shelf.asked == ["alpha 3", "alpha 2"]
    assert [one.name for one in found] == ["beta", "alpha"]


def test_a_package_has_only_so_many_examples(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "MOST", 1)
    (one,) = make([ALPHA], tmp_path, releases=3, sources={"shelf": shelf})
    assert (one.examples, one.versions) == (1, ["3", "2"])


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_text("{]")
    with pytest.raises(CorpusError, match="the ledger cannot be read"):
        make([replace(ALPHA, source="pypi")], tmp_path, releases=2)
