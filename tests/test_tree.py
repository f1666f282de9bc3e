"""Checks of all tracked files, in any language."""

import ast
import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from lacuna_model.hub import models

ROOT = Path(__file__).parents[1]
# Only the configuration of pip, npm, apt, cargo and the hub's client names a registry. The names are split here, so
# that this file contains none.
REGISTRIES = (
    "py" + "pi.org", "pythonhosted" + ".org", "npm" + "js.org", "npm" + "js.com", "yarn" + "pkg.com",
    "deb.debian" + ".org", "crates" + ".io", "hugging" + "face.co", "proxy.golang" + ".org", "ruby" + "gems.org",
)  # fmt: skip


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this folder is not a git clone")
    return [path for name in listed.stdout.decode().split("\0")[:-1] if (path := ROOT / name).is_file()]


def test_no_file_holds_the_address_of_a_package_registry() -> None:
    files = [(path, path.read_bytes().lower()) for path in tracked()]
    assert [(path, host) for path, data in files for host in REGISTRIES if host.encode() in data] == []


def test_lock_files_contain_no_download_addresses() -> None:
    locks = [path for path in tracked() if path.name == "package-lock.json"]
    assert locks
    for path in locks:
        packages = json.loads(path.read_text())["packages"]
        assert not any("resolved" in package for package in packages.values())
        assert "omit-lockfile-registry-resolved=true" in path.with_name(".npmrc").read_text().splitlines()


def documents() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md" and path.name != "CHANGELOG.md"]


@pytest.mark.parametrize("page", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_have_targets(page: Path) -> None:
    for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ +(.+)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {_anchor(heading) for heading in headings}, target


def _anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_classes_that_the_documents_name_exist() -> None:
    """Figures of earlier commits may name what is gone; all other pages describe what is."""
    sources = [path for path in tracked() if path.suffix in {".py", ".ts", ".lua", ".js", ".c", ".h"}]
    known = {word for path in sources for word in re.findall(r"\w+", path.read_text("utf-8"))}
    pages = [page for page in documents() if not page.is_relative_to(ROOT / "tests")]
    named = {
        (str(page.relative_to(ROOT)), name)
        for page in pages
        for name in re.findall(r"`([A-Z]\w*[a-z]\w*)[.(`]", page.read_text("utf-8"))
    }
    assert len(named) > 20
    assert {one for one in named if one[1] not in known} == set()


def test_files_that_the_architecture_names_exist() -> None:
    pages = [ROOT / "model" / "README.md", *(ROOT / "model" / "docs").glob("*.md")]
    page = "\n".join(path.read_text("utf-8") for path in pages)
    named = re.findall(r"`([\w./-]+(?:\.(?:py|scm|toml)|/))`", page)
    paths = [f"/{path.relative_to(ROOT)}" for path in tracked()]
    assert len(named) > 60
    assert [name for name in named if not any(f"/{name}" in path for path in paths)] == []


# The shapes of other services' requests have these services' names, the structs of C those of what they mirror.
OWN_NAMES = ("server/lacuna_server/http/shapes", "kernels/lacuna_kernels/native.py")


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for root in ("kernels", "model", "server", "lsp"):
        for path in sorted((ROOT / root).glob("lacuna_*/**/*.py")):
            name = str(path.relative_to(ROOT))
            if not name.startswith(OWN_NAMES):
                classes = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]
                for node in classes:
                    places.setdefault(node.name, []).append(name)
    assert {name: found for name, found in places.items() if len(found) > 1 and not name.startswith("_")} == {}


ROOTS = {"lacuna_kernels": "kernels", "lacuna_model": "model", "training": "model", "lacuna_lsp": "lsp"}
ROOTS |= {"lacuna_server": "server", "lacuna_cluster": "server", "tests": "."}


def test_what_a_program_imports_from_the_tree_exists() -> None:
    """Programs that are run by hand would tell by failing."""
    missing = []
    data = ROOT / "tests/data"
    for path in (path for path in tracked() if path.suffix == ".py" and not path.is_relative_to(data)):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (root := ROOTS.get((node.module or "").partition(".")[0])):
                place = ROOT / root / str(node.module).replace(".", "/")
                known = _names(place.with_suffix(".py")) | _names(place / "__init__.py")
                known |= {one.stem for one in place.glob("*")}
                missing += [(str(path), node.module, one.name) for one in node.names if one.name not in known]
    assert missing == []


@cache
def _names(module: Path) -> set[str]:
    """What a module defines, assigns or imports; nothing where it does not exist."""
    found = set[str]()
    for node in ast.walk(ast.parse(module.read_bytes() if module.is_file() else b"")):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


def test_the_tests_that_the_threat_model_names_exist() -> None:
    page = (ROOT / "server" / "README.md").read_text("utf-8").partition("## Threat model")[2].partition("\n## ")[0]
    named = re.findall(r"`(test_\w+)`", page)
    written = "".join(path.read_text("utf-8") for path in tracked() if path.name.startswith("test_"))
    assert len(named) > 25
    assert [name for name in named if f"def {name}(" not in written] == []
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert [row for row in rows[1:] if "`test_" not in row.rpartition(" | ")[2]] == []


def test_tests_have_a_cache_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = models.cache_dir()
    monkeypatch.delenv(models.CACHE_VARIABLE)
    assert not own.samefile(models.cache_dir())
    assert not (own / "prepared").samefile(models.cache_dir() / "prepared")


def test_the_readme_is_read_in_some_minutes() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900
