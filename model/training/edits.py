"""Examples of next edits: two releases of a file, cut into a change and what follows it within the lines below."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from lacuna_model.core.errors import NotPublishedError
from lacuna_model.next_edit.changes import LINE_ENDS, TokenizedText, hunks
from lacuna_model.text.diff import Hunk
from lacuna_model.text.lines import lines_of
from training.corpus import SPLITS, Benchmarks, Job, sift
from training.packages import CorpusError, Package, Role
from training.registries import Npm, PyPI, Registry
from training.stored import Document, DocumentWriter

# Lines below a change that are rewritten; where nothing is to do there, they stay.
ROWS = 12
# Characters that are kept before the change and behind the rewritten lines.
BEFORE, AFTER = 8_000, 4_000
# A change of more lines is no single edit.
MAX_LINES = 12
# The share of examples in which nothing is to do.
NOTHING = 1 / 3
_IMPORT = re.compile(r"\s*(import|from|export\s.*\bfrom|(const|let|var)\b.*\brequire\()")
_DIGITS = re.compile(r"[\d.]+")
SOURCES: Mapping[str, Registry] = {"pypi": PyPI(), "npm": Npm()}
LEDGER, FOLDER = "edits.jsonl", "edits"
# A package's examples are at most so many, so that none outweighs the others.
MOST = 400


class EditExample(msgspec.Struct, frozen=True):
    """The lines ``old`` have become the lines ``new``, and then the lines ``standing`` below become ``updated``.

    ``prefix`` is the text before the change, ``suffix`` the one behind the standing lines.
    """

    package: str
    version: str
    licence: str
    path: str
    language: str
    prefix: str
    old: str
    new: str
    standing: str
    updated: str
    suffix: str

    @property
    def follows(self) -> bool:
        """Whether something is to do."""
        return self.standing != self.updated


class _Change(NamedTuple):
    """The lines ``was`` of a text, up to ``hunk.end``, became the lines ``made``."""

    hunk: Hunk
    was: Sequence[str]
    made: Sequence[str]

    @property
    def is_worth(self) -> bool:
        """Whether it says something: no formatting, no number alone, no import alone."""
        was, made = "".join(self.was), "".join(self.made)
        if max(len(self.was), len(self.made)) > MAX_LINES or _words(was) == _words(made):
            return False
        if _DIGITS.sub("0", was) == _DIGITS.sub("0", made):
            return False
        written = [line for line in {*self.was} ^ {*self.made} if line.strip()]
        return bool(written) and not all(map(_IMPORT.match, written))

    def takes_back(self, other: "_Change") -> bool:
        """Whether it writes again what another one has taken away."""
        written = {line.strip() for line in self.made if line.strip()}
        return bool(written) and written <= {line.strip() for line in other.was}


def _words(text: str) -> list[str]:
    """The tokens of a text but for those that formatting moves."""
    return [token for token in TokenizedText(text).texts if token not in (*LINE_ENDS, ",")]


def examples(before: str, after: Document, seed: int) -> list[EditExample]:
    """The examples of a file that was ``before``; two thirds of them have something to do, where there are so many."""
    old, new = lines_of(before, keepends=True), lines_of(after.text, keepends=True)
    changes = [
        _Change(part, old[part.start : part.end], new[part.new_start : part.new_end])
        for hunk in hunks(before, after.text)
        for part in _parts(old, new, hunk)
    ]
    found: dict[bool, list[EditExample]] = {True: [], False: []}
    for index, change in enumerate(changes):
        last = change.hunk.end + ROWS
        updated = _updated(old[change.hunk.end : last], change, changes[index + 1 :]) if change.is_worth else None
        if updated is not None and (standing := "".join(old[change.hunk.end : last])).strip() and updated.strip():
            one = EditExample(
                after.package,
                after.version,
                after.licence,
                after.path,
                after.language,
                prefix="".join(new[: change.hunk.new_start])[-BEFORE:],
                old="".join(change.was),
                new="".join(change.made),
                standing=standing,
                updated=updated,
                suffix="".join(old[last:])[:AFTER],
            )
            found[one.follows].append(one)
    rng = Random(f"{seed} {after.package} {after.path}")
    rng.shuffle(found[False])
    return [*found[True], *found[False][: max(round(len(found[True]) * NOTHING / (1 - NOTHING)), 1)]]


def _parts(old: Sequence[str], new: Sequence[str], hunk: Hunk) -> Iterator[Hunk]:
    """A change as a person makes it: line by line where each line has become one other."""
    count = hunk.end - hunk.start
    if count != hunk.new_end - hunk.new_start or count > MAX_LINES:
        yield hunk
        return
    for row in range(count):
        if old[hunk.start + row] != new[hunk.new_start + row]:
            yield Hunk(hunk.start + row, hunk.start + row + 1, hunk.new_start + row, hunk.new_start + row + 1)


def _updated(standing: list[str], change: _Change, later: Sequence[_Change]) -> str | None:
    """What becomes of the lines ``standing`` below a change; None where what follows goes on below them, says nothing,
    or takes the change back.
    """
    start, last = change.hunk.end, change.hunk.end + ROWS
    if later and later[0].hunk.start < last:
        if later[0].hunk.end > last or not later[0].is_worth or later[0].takes_back(change):
            return None
        for one in reversed([one for one in later if one.hunk.end <= last]):
            standing[one.hunk.start - start : one.hunk.end - start] = one.made
    return "".join(standing)


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
    advance: Callable[[], None] = lambda: None,
    sources: Mapping[str, Registry] = SOURCES,
    benchmarks: Benchmarks | None = None,
    seed: int = 0,
) -> list[EditRecord]:
    """Writes `edits/SPLIT/SOURCE-NAME.jsonl.zst` of each package, from so many ``releases``, and a line of the ledger.

    Packages that the ledger has are left as they are. Raises CorpusError where the ledger is damaged.
    """
    found = read_ledger(out / LEDGER)
    known = {(one.source, one.name) for one in found}
    for package in packages:
        if package.source not in sources or package.role not in SPLITS or (package.source, package.name) in known:
            continue
        source = sources[package.source]
        record, made = _examples(package, source, out, releases, benchmarks or Benchmarks(), seed)
        if made:
            with DocumentWriter(path_of(out, package)) as writer:
                for one in made:
                    writer.write(one)
        with (out / LEDGER).open("ab") as stream:
            stream.write(msgspec.json.encode(record) + b"\n")
        found.append(record)
        advance()
    return found


def path_of(out: Path, package: Package) -> Path:
    """The file of a package's examples."""
    name = f"{package.source}-{package.name.replace('/', '-')}.jsonl.zst"
    return out / FOLDER / SPLITS[package.role] / name


def read_ledger(path: Path) -> list[EditRecord]:
    """The records of a ledger, none where there is no such file; raises CorpusError where it is damaged."""
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [msgspec.json.decode(line, type=EditRecord) for line in lines]
    except msgspec.MsgspecError as error:
        raise CorpusError(f"{path}: the ledger cannot be read: {error}") from error


def _examples(
    package: Package, source: Registry, out: Path, releases: int, benchmarks: Benchmarks, seed: int
) -> tuple[EditRecord, list[EditExample]]:
    """The examples of a package, of its newest releases first; each text of a change counts once."""
    record = EditRecord(source=package.source, name=package.name, role=package.role)
    dropped, found, folder = Counter[str](), dict[tuple[str, str, str], EditExample](), out / "downloads"
    newer: dict[str, Document] = {}
    try:
        paths = source.fetch(package, folder)
        while True:
            sifted = sift(Job(package, source, paths), benchmarks)
            record.versions.append(package.version)
            record.licence = record.licence or sifted.record.licence
            dropped.update({} if sifted.record.licence else {"licence of the package": 1})
            older = {document.path: document for document, _ in sifted.documents}
            for path in sorted(newer.keys() & older.keys()):
                for one in examples(older[path].text, newer[path], seed):
                    found.setdefault((one.old, one.new, one.standing), one)
            newer = older
            if len(record.versions) == releases or len(found) >= MOST:
                break
            package, paths = source.before(package, folder)
    except NotPublishedError:
        dropped["not published"] += 1
    kept = list(found.values())[:MOST]
    record.dropped = dict(dropped)
    record.examples, record.nothing = len(kept), sum(not one.follows for one in kept)
    return record, kept
