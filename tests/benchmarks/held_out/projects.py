"""Lays out held-out packages as projects: their sources, and beside them the packages that they need, as installed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.held_out.texts import find_held_out

from training.stored import Document, read_documents

LANGUAGES = ("python", "javascript", "typescript")
SITE = f".venv/lib/python3.{sys.version_info.minor}/site-packages"


def lay_out(corpus: Path, folder: Path) -> list[tuple[str, Path]]:
    """The language and folder of each project; those that ``folder`` lacks are made.

    Raises RequestError where the corpus lacks a language, and CalledProcessError where a package cannot be installed.
    """
    found = []
    for language, file in find_held_out(corpus, LANGUAGES).items():
        packages: dict[str, list[Document]] = {}
        for document in read_documents(file):
            packages.setdefault(document.package, []).append(document)
        for package, documents in packages.items():
            project = folder / language / package.replace("/", "__")
            if not project.exists():
                making = project.with_name(f".{project.name}")
                shutil.rmtree(making, ignore_errors=True)
                for document in documents:
                    source = making / document.path
                    source.parent.mkdir(parents=True, exist_ok=True)
                    source.write_text(document.text)
                (_python if language == "python" else _script)(making, package, documents[0].version)
                making.rename(project)
            found.append((language, project))
    return found


def _python(project: Path, package: str, version: str) -> None:
    site = project / SITE
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:"]
    subprocess.run([*pip, "--target", str(site), f"{package}=={version}"], check=True)
    (project / ".venv/pyvenv.cfg").touch()
    for own in {file.relative_to(project).parts[0] for file in project.rglob("*.py")} - {".venv"}:
        for installed in (site / own, (site / own).with_suffix(".py")):
            if installed.is_dir():
                shutil.rmtree(installed)
            else:
                installed.unlink(missing_ok=True)


def _script(project: Path, package: str, version: str) -> None:
    (project / "package.json").write_text(json.dumps({"name": "held-out", "private": True}))
    npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run([*npm, f"{package}@{version}", "@types/node"], cwd=project, check=True)
    shutil.rmtree(project / "node_modules" / package)
