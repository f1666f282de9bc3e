"""The record of a built corpus: what went in, under which licence, and why the rest was left out."""

from collections import Counter
from pathlib import Path

import msgspec

from lacuna_model.hub import atomic
from lacuna_model.train.stored.packages import CorpusError, Role


class PackageRecord(msgspec.Struct, kw_only=True):
    """What one package gave to the corpus."""

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
    """A whole corpus; the totals are by `language/split`."""

    totals: dict[str, Total] = {}
    tokenizer: str | None = None
    packages: list[PackageRecord] = []

    def dropped(self) -> Counter[str]:
        """Sum the reasons for leaving files or packages out."""
        return sum((Counter(record.dropped) for record in self.packages), Counter[str]())

    def write(self, path: Path) -> None:
        """Write the manifest as readable JSON, all or nothing."""
        try:
            with atomic.replacing(path) as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        except OSError as error:
            raise CorpusError(f"{path}: cannot write the manifest: {error.strerror}") from error


def read_manifest(path: Path) -> Manifest:
    """Read a manifest that `Manifest.write` wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise CorpusError(f"{path}: cannot read the manifest: {error}") from error
