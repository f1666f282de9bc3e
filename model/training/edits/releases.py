"""Makes the examples of each package from its last releases, and keeps a ledger of what came of it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from lacuna_model.core.errors import NotPublishedError
from training.corpus import SPLITS
from training.edits.example import EditExample
from training.edits.following import examples
from training.sifting.benchmarks import Benchmarks
from training.sifting.sift import Job, sift
from training.sources.npm import Npm
from training.sources.pypi import PyPI
from training.sources.source import Releases
from training.stored.documents import Document, DocumentWriter
from training.stored.packages import CorpusError, Package, Role

SOURCES: Mapping[str, Releases] = {"pypi": PyPI(), "npm": Npm()}
LEDGER, FOLDER = "edits.jsonl", "edits"
# A package's examples are at most so many, so that none outweighs the others.
MOST = 400


class EditRecord(msgspec.Struct, kw_only=True):
    """What came of one package: its ``versions``, newest first, its examples, and why releases gave none."""

    source: str
    name: str
    versions: list[str] = []
    role: Role
    licence: str | None = None
    examples: int = 0
    nothing: int = 0
    dropped: dict[str, int] = {}


def make(
    packages: Sequence[Package],
    out: Path,
    *,
    releases: int,
    progress: Callable[[int, int, str], None] | None = None,
    sources: Mapping[str, Releases] = SOURCES,
    benchmarks: Benchmarks | None = None,
    seed: int = 0,
) -> list[EditRecord]:
    """Writes `edits/SPLIT/SOURCE-NAME.jsonl.zst` of each package, from so many ``releases``, and a line of the ledger.

    Packages that the ledger has are left as they are. Raises CorpusError where the ledger cannot be read or written.
    """
    wanted = [one for one in packages if one.source in sources and one.role in SPLITS]
    found = read_ledger(out / LEDGER)
    known = {(one.source, one.name) for one in found}
    for done, package in enumerate(wanted):
        if progress:
            progress(done, len(wanted), f"{package.name} {package.version}")
        if (package.source, package.name) in known:
            continue
        record = EditRecord(source=package.source, name=package.name, role=package.role)
        made = _examples(package, sources[package.source], out, releases, benchmarks or Benchmarks(), seed, record)
        if made:
            with DocumentWriter(path_of(out, package)) as writer:
                for one in made:
                    writer.write(one)
        _add(out / LEDGER, record)
        found.append(record)
    if progress:
        progress(len(wanted), len(wanted), "done")
    return found


def path_of(out: Path, package: Package) -> Path:
    """The file of a package's examples."""
    name = f"{package.source}-{package.name.replace('/', '-')}.jsonl.zst"
    return out / FOLDER / SPLITS[package.role] / name


def read_ledger(path: Path) -> list[EditRecord]:
    """The records of a ledger, none where there is no such file; raises CorpusError where it cannot be read."""
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [msgspec.json.decode(line, type=EditRecord) for line in lines]
    except (OSError, msgspec.MsgspecError) as error:
        raise CorpusError(f"{path}: the ledger cannot be read: {error}") from error


def _add(path: Path, record: EditRecord) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            stream.write(msgspec.json.encode(record) + b"\n")
    except OSError as error:
        raise CorpusError(f"{path}: the ledger cannot be written: {error.strerror}") from error


def _examples(
    package: Package,
    source: Releases,
    out: Path,
    releases: int,
    benchmarks: Benchmarks,
    seed: int,
    record: EditRecord,
) -> list[EditExample]:
    """The examples of a package, of its newest releases first; each text of a change counts once."""
    dropped, found, folder = Counter[str](), dict[tuple[str, str, str], EditExample](), out / "downloads"
    newer: dict[str, Document] = {}
    try:
        paths = source.fetch(package, folder)
        for _ in range(releases):
            sifted = sift(Job(package, source, paths), benchmarks)
            record.versions.append(package.version)
            record.licence = record.licence or sifted.licence
            dropped.update({} if sifted.licence else {"licence of the package": 1})
            older = {document.path: document for document, _ in sifted.documents}
            for path in sorted(newer.keys() & older.keys()):
                for one in examples(older[path].text, newer[path], seed):
                    found.setdefault((one.old, one.new, one.standing), one)
            newer = older
            if len(record.versions) < releases and len(found) < MOST:
                package, paths = source.before(package, folder)
            else:
                break
    except NotPublishedError:
        dropped["not published"] += 1
    kept = list(found.values())[:MOST]
    record.dropped = dict(dropped)
    record.examples, record.nothing = len(kept), sum(not one.follows for one in kept)
    return kept
