import time
from pathlib import Path

import pytest

from lacuna_model.snippets.imports import Import
from lacuna_model.snippets.packages import index
from lacuna_model.snippets.packages.index import PackageIndex

FILES = {
    "paper/__init__.py": "from ._sheets import Sheet, fold\nfrom .tools import *\n",
    "paper/_sheets.pyi": (
        "class Sheet(Flat):\n    def cut(self, at: int) -> Sheet: ...\ndef fold(sheet: Sheet) -> Sheet: ...\n"
    ),
    "paper/_sheets.py": "def only_in_the_source(): ...\n",
    "paper/tools.py": "def glue(a, b=None):\n    pass\n",
    "paper/open.py": "def __getattr__(name): ...\n",
    "paper-2.1.dist-info/METADATA": "",
    "other-stubs/__init__.pyi": "def typed(x: int) -> int: ...\n",
    "other/__init__.py": "def typed(x): ...\n",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "project" / ".venv" / "lib" / "python3.12" / "site-packages"
    for name, text in FILES.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (tmp_path / "project" / ".venv" / "pyvenv.cfg").touch()
    return site


@pytest.fixture
def packages(tmp_path: Path, site: Path) -> PackageIndex:
    return PackageIndex(tmp_path / "project")


def signature(packages: PackageIndex, module: str, name: str) -> str | None:
    found = packages.named(Import(module, name), "python", "")
    return found.signature if found is not None else None


def test_a_name_is_found_where_its_package_takes_it_from(packages: PackageIndex) -> None:
    found = packages.named(Import("paper", "Sheet"), "python", "")
    assert found is not None
    assert (found.path, found.signature) == ("paper/_sheets.pyi", "class Sheet(Flat)")
    assert found.members == {"cut": "def cut(at: int) -> Sheet"}
    assert signature(packages, "paper", "glue") == "def glue(a, b=None)"


def test_stubs_come_first(packages: PackageIndex) -> None:
    assert signature(packages, "other", "typed") == "def typed(x: int) -> int"
    assert signature(packages, "paper._sheets", "only_in_the_source") is None


def test_what_a_module_lacks_is_known_only_if_all_of_it_is(packages: PackageIndex) -> None:
    assert packages.offers(Import("paper", "fold"), "python", "") is True
    assert packages.offers(Import("paper", "tools"), "python", "") is True
    assert packages.offers(Import("paper", "folds"), "python", "") is False
    assert packages.offers(Import("paper.open", "folds"), "python", "") is None
    assert packages.offers(Import("nothing.here", "folds"), "python", "") is None


def test_the_standard_library_and_its_modules_in_c_are_known(packages: PackageIndex) -> None:
    told = signature(packages, "json", "dumps")
    assert told is not None
    assert told.startswith("def dumps(obj, *, skipkeys=False")
    assert packages.offers(Import("itertools", "chain"), "python", "") is True
    assert packages.offers(Import("itertools", "chains"), "python", "") is False


def test_links_that_lead_out_of_the_environment_are_not_followed(packages: PackageIndex, site: Path) -> None:
    outside = site.parents[4] / "outside"
    outside.mkdir()
    (outside / "secrets.py").write_text("def stolen(): ...\n")
    (site / "linked").symlink_to(outside)
    (site / "secrets_link.py").symlink_to(outside / "secrets.py")
    (site / "within.py").symlink_to(site / "paper" / "tools.py")
    assert signature(packages, "linked.secrets", "stolen") is None
    assert signature(packages, "secrets_link", "stolen") is None
    assert signature(packages, "within", "glue") == "def glue(a, b=None)"


def test_an_environment_that_is_a_link_is_not_read(site: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".venv").symlink_to(tmp_path / "project" / ".venv")
    assert signature(PackageIndex(tmp_path / "linked"), "paper", "glue") is None


def test_nothing_of_a_package_is_executed(packages: PackageIndex, site: Path, tmp_path: Path) -> None:
    (site / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\ndef bait(): ...\n")
    assert signature(packages, "trap", "bait") == "def bait()"
    assert not (tmp_path / "sprung").exists()


def test_reading_stops_when_its_time_is_used_up(packages: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    assert signature(packages, "paper", "glue") == "def glue(a, b=None)"
    monkeypatch.setattr(index, "CPU_S", 0.0)
    assert signature(packages, "paper", "glue") == "def glue(a, b=None)"
    assert signature(packages, "other", "typed") is None


def test_modules_that_import_each_other_end(packages: PackageIndex, site: Path) -> None:
    (site / "one.py").write_text("from two import *\nfrom two import x\n")
    (site / "two.py").write_text("from one import *\nfrom one import x\n")
    assert packages.named(Import("one", "nothing"), "python", "") is None


@pytest.mark.parametrize("in_background", [False, True])
def test_packages_that_come_or_change_later_are_seen(
    tmp_path: Path, site: Path, in_background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LOOK_AFTER", 0.0)
    aside = site.parents[2].rename(tmp_path / "aside")
    packages = PackageIndex(site.parents[3])

    def offers(module: str, name: str) -> bool | None:
        return packages.offers(Import(module, name), "python", "")

    def until(module: str, name: str, known: bool | None) -> None:
        while offers(module, name) is not known:
            assert in_background
            time.sleep(0.01)

    if in_background:
        packages.start()
    try:
        assert offers("paper", "fold") is None
        while not packages.is_read:
            time.sleep(0.01)
        aside.rename(site.parents[2])
        until("paper.tools", "glue", True)
        until("paper.tools", "paste", False)
        (site / "paper" / "tools.py").write_text("def glue(): ...\ndef paste(): ...\n")
        until("paper.tools", "paste", True)
        until("scissors", "snip", None)
        (site / "scissors.py").write_text("def snip(): ...\n")
        until("scissors", "snip", True)
        (site / "scissors.py").unlink()
        until("scissors", "snip", None)
    finally:
        packages.stop()


def test_a_package_of_scripts_that_comes_later_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LOOK_AFTER", 0.0)
    packages = PackageIndex(tmp_path)
    assert packages.named(Import("paper", "fold"), "typescript", "src") is None
    (tmp_path / "node_modules" / "paper").mkdir(parents=True)
    (tmp_path / "node_modules" / "paper" / "package.json").write_text("{}")
    (tmp_path / "node_modules" / "paper" / "index.d.ts").write_text("export function fold(): void;\n")
    assert packages.named(Import("paper", "fold"), "typescript", "src") is not None
