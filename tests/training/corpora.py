"""Corpora of a few texts, and a registry of a few packages."""

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from lacuna_model.core.errors import NotPublishedError
from training.packages import Package
from training.registries import PyPI
from training.stored import Document, DocumentWriter


def corpus(folder: Path, **languages: list[str]) -> Path:
    """A corpus with these texts by language, each for training and held out."""
    for language, contents in languages.items():
        for split in ("train", "held_out"):
            with DocumentWriter(folder / language / f"{split}.jsonl.zst") as writer:
                for number, text in enumerate(contents):
                    writer.write(Document("p", "1", "MIT", f"{number}", language, text))
    return folder


class Shelf(PyPI):
    """A registry whose packages are wheels in a folder, of the versions 1, 2 and so on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()

    def wheel(self, name: str, version: str) -> Path:
        return self.folder / f"{name}-{version}-py3-none-any.whl"

    def add(self, name: str, files: Mapping[str, str], version: str = "1", licence: str = "MIT") -> None:
        metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: {licence}\n"
        with zipfile.ZipFile(self.wheel(name, version), "w") as archive:
            for path, text in {f"{name}-{version}.dist-info/METADATA": metadata, **files}.items():
                archive.writestr(path, text)

    def download(self, package: Package, folder: Path) -> None:
        wanted = package.version
        version = str(int(wanted[1:]) - 1) if wanted.startswith("<") else wanted
        self.asked.append(f"{package.name} {version}")
        if not self.wheel(package.name, version).exists():
            raise NotPublishedError(f"{package.name}: not published")
        shutil.copy(self.wheel(package.name, version), folder)
