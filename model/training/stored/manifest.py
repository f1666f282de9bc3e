"""The record of a built corpus: its packages and licences, and the reasons for omitted files."""

from collections import Counter
from pathlib import Path

import msgspec

from lacuna_model.hub import atomic
from training.stored.packages import CorpusError, Role


class PackageRecord(msgspec.Struct, kw_only=True):
    """The contribution of one package to the corpus."""

    source: str
    name: str
    version: str
    role: Role
    licence: str | None = None
    stated_licence: str = ""
    downloads: dict[str, str] = {}
    files: int = 0
    bytes: int = 0
    tokens: int | None = None
    dropped: dict[str, int] = {}


class Total(msgspec.Struct):
    """Sums over one language and split."""

    packages: int = 0
    files: int = 0
    bytes: int = 0
    tokens: int | None = None


class Manifest(msgspec.Struct, kw_only=True):
    """The record of a whole corpus; ``totals`` are by `language/split`."""

    totals: dict[str, Total] = {}
    tokenizer: str | None = None
    packages: list[PackageRecord] = []

    def dropped(self) -> Counter[str]:
        """Returns how often each reason for omitting files or packages occurred."""
        return sum((Counter(record.dropped) for record in self.packages), Counter[str]())

    def write(self, path: Path) -> None:
        """Writes the manifest as indented JSON, atomically; raises CorpusError if that fails."""
        try:
            with atomic.replacing(path) as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        except OSError as error:
            raise CorpusError(f"{path}: cannot write the manifest: {error.strerror}") from error
