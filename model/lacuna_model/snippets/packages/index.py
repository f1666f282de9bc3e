"""The index of the names that installed packages offer to the files of a workspace.

Only modules that a file imports are read, and those that they take names from. Within its bounds of time and memory.
"""

import contextlib
import hashlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from types import ModuleType

import msgspec

from lacuna_model.core.background import Background
from lacuna_model.files.opening import read_within
from lacuna_model.hub import atomic, models
from lacuna_model.snippets.format import plain
from lacuna_model.snippets.imports import Import
from lacuna_model.snippets.packages import declared_module, python_module, script_module
from lacuna_model.snippets.packages.environment import SCRIPTS, Environment, Module, absolute, mark_of
from lacuna_model.snippets.packages.module_names import MAX_SIGNATURE, ModuleNames, Named

# Increase when what a reader finds changes.
VERSION = 2
SUFFIX = ".names"
MAX_KEPT = 200
# What an index may take: processor time (s) from its start on, memory (bytes), and the bytes of a file.
CPU_S = 2.0
MAX_BYTES = 20_000_000
MAX_FILE = 2_000_000
# How often (s) it is checked whether what was read has changed.
LOOK_AFTER = 5.0
# Modules that are remembered; names that wait to be looked up; names that were, and modules that are not there.
_MAX_MODULES, _MAX_WAITING, _MAX_ASKED = 2_000, 500, 20_000
# Documents whose imports are remembered.
_MAX_DOCUMENTS = 64
# How often a name may be taken from another module.
_HOPS = 4
# A module that took longer to read (s) is kept in the cache.
_WORTH_KEEPING = 0.01
Read = Callable[[str], ModuleNames]
_READERS: Mapping[str, Read] = {
    "python": python_module.read,
    **dict.fromkeys(SCRIPTS, script_module.read),
    **declared_module.READERS,
}
# What stands between the parts of a module's name where a module may be imported from another one.
_BETWEEN = {"python": ".", "rust": "/"}


def load(module: Module, mark: tuple[int, int]) -> ModuleNames | None:
    """The names of a module whose file has this size and modification time (ns); None where they are not kept."""
    file = _location(module, mark)
    try:
        with atomic.kept(file) as stream:
            return msgspec.msgpack.decode(stream.read(), type=ModuleNames)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


def save(module: Module, mark: tuple[int, int], names: ModuleNames) -> None:
    """Keep the names of a module, readable by the user only, since a package may be private. Raises OSError."""
    file = _location(module, mark)
    with atomic.keeping(file, most=MAX_KEPT) as stream:
        stream.write(msgspec.msgpack.encode(names))


def _location(module: Module, mark: tuple[int, int]) -> Path:
    """A version is the same wherever it is installed; without one the file's time tells."""
    parts = (VERSION, module.package, module.version or mark[1], module.shown, mark[0])
    digest = hashlib.sha256("\0".join(map(str, parts)).encode(errors="surrogateescape")).hexdigest()
    return models.cache_dir() / "names" / f"{digest[:32]}{SUFFIX}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A module as a file in ``folder`` of the workspace names it, or one beside the module ``within`` a package."""

    module: str
    language: str
    folder: str = ""
    within: Module | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """A module that was read; without a ``file``, one that the interpreter of Lacuna was built with.

    ``mark`` is the size of its files, and when they were last modified (ns).
    """

    names: ModuleNames
    size: int = 0
    file: Module | None = None
    mark: tuple[int, int] | None = None


class PackageIndex:
    """The names that packages offer to a workspace.

    Once started, one thread reads what was asked for, and who asks is told what is known so far. Before that, whoever
    asks reads. What has changed on disk is read again, some seconds later.
    """

    languages = frozenset(_READERS)

    def __init__(self, root: Path) -> None:
        self._environment = Environment(root)
        self._sources: dict[_Place, _Source] = {}
        self._missing: set[_Place] = set()
        self._waiting: deque[tuple[_Place, str]] = deque()
        self._asked: set[tuple[_Place, str]] = set()
        self._wanted: set[tuple[Import | str, ...]] = set()
        self._members: frozenset[str] | None = None
        self._version = 0  # of the members
        self._size, self._spent, self._looks_at = 0, 0.0, 0.0
        self._background = Background("lacuna-packages", self._work)

    def start(self) -> None:
        """Read in the background from now on."""
        self._background.start()

    def stop(self) -> None:
        """Stop the background work."""
        self._background.stop()

    @property
    def is_read(self) -> bool:
        """Whether all that was asked for was read, or will not be."""
        return not self._waiting or self._background.has_failed

    @property
    def spent(self) -> float:
        """The processor time (s) that reading has taken."""
        return self._spent

    @property
    def size(self) -> int:
        """About how many bytes the names take in memory."""
        return self._size

    @property
    def members(self) -> frozenset[str]:
        """The names that anything read so far has behind a dot: those of modules and of their classes."""
        found, version = self._members, self._version
        if found is None:
            known = [source.names for source in list(self._sources.values())]
            own = (name for names in known for name in (*names.names, *names.imported))
            inner = (name for names in known for members in names.members.values() for name in members)
            found = frozenset((*own, *inner))
            if version == self._version:  # no module came meanwhile, in the thread that reads them
                self._members = found
        return found

    def want(self, imports: Sequence[Import], language: str, folder: str) -> None:
        """Read the modules that a file in ``folder`` of the workspace imports names from."""
        key: tuple[Import | str, ...] = (*imports, language, folder)
        if key not in self._wanted:
            if len(self._wanted) > _MAX_DOCUMENTS:
                self._wanted.clear()
            self._wanted.add(key)
            for one in imports:
                self.named(one, language, folder)

    def named(self, wanted: Import, language: str, folder: str) -> Named | None:
        """What is known of a name of a package; None where nothing is, be it so far."""
        return self._ask(_place(wanted.module, language, folder), wanted.name)

    def offers(self, wanted: Import, language: str, folder: str) -> bool | None:
        """Whether a module offers a name; None where not all of its names are known."""
        if self.named(wanted, language, folder) is not None:
            return True
        return False if self._is_whole(_place(wanted.module, language, folder)) else None

    def offered(self, module: Import, language: str, folder: str) -> dict[str, tuple[str, str]]:
        """The public names that are known of an imported module, each with the path of its file and its signature."""
        place = _place(_joined(module, language), language, folder)
        self._ask(place, "")
        return {
            name: (source.file.shown if source.file is not None else place.module, text)
            for source in self._read_from(place, _HOPS)
            for name, text in source.names.names.items()
            if not name.startswith("_")
        }

    def names(self, module: Import, language: str, folder: str) -> set[str]:
        """All names that are known of an imported module, those that it takes from others among them."""
        place = _place(_joined(module, language), language, folder)
        self._ask(place, "")
        known = (source.names for source in self._read_from(place, _HOPS))
        return {name for names in known for name in (*names.names, *names.imported)}

    def _ask(self, place: _Place, name: str) -> Named | None:
        if place.language not in _READERS:
            return None
        if not self._background.is_started:
            self._look_again()
            return self._find(place, name, _HOPS, reads=True)
        if time.monotonic() >= self._looks_at:
            self._background.wake.set()
        found, key = self._find(place, name, _HOPS, reads=False), (place, name)
        if found is None and key not in self._asked and len(self._waiting) < _MAX_WAITING:
            if len(self._asked) > _MAX_ASKED:
                self._asked.clear()
            self._asked.add(key)
            self._waiting.append(key)
            self._background.wake.set()
        return found

    def _work(self) -> None:
        """Read what was asked for, and wait until there is more."""
        self._look_again()
        while self._waiting and not self._background.stopped.is_set():
            place, name = self._waiting[0]
            try:
                self._find(place, name, _HOPS, reads=True)
            finally:
                self._waiting.popleft()
        self._background.wake.wait()
        self._background.wake.clear()

    def _look_again(self) -> None:
        """Forget what has changed on disk, if the last look is long ago."""
        if time.monotonic() < self._looks_at:
            return
        self._looks_at = time.monotonic() + LOOK_AFTER
        is_other = self._environment.has_changed()
        old = [place for place, source in self._sources.items() if self._is_old(place, source, is_other=is_other)]
        for place in old:
            self._size -= self._sources.pop(place).size
        if is_other or old:
            self._version, self._members = self._version + 1, None
            self._missing.clear()
            self._asked.clear()
            self._wanted.clear()

    def _is_old(self, place: _Place, source: _Source, *, is_other: bool) -> bool:
        """Whether a module has changed; in an environment that ``is_other`` it may also be another file."""
        if is_other and self._located(place) != source.file:
            return True
        return source.file is not None and mark_of((source.file.file, *source.file.others)) != source.mark

    def _located(self, place: _Place) -> Module | None:
        return self._environment.find(place.module, place.language, place.folder, place.within)

    def _find(self, place: _Place, name: str, hops: int, *, reads: bool) -> Named | None:
        """A name of a module ("": the module itself), also where it comes from another; ``reads`` what is not read."""
        source = self._source(place, reads=reads)
        if source is None:
            return None
        shown = source.file.shown if source.file is not None else place.module
        if not name:
            for star in source.names.stars if hops else ():
                self._find(_from(source, place, star), "", hops - 1, reads=reads)
            return Named(place.module, shown)
        if (signed := source.names.names.get(name)) is not None:
            return Named(name, shown, signed, source.names.members.get(name, {}))
        if not hops:
            return None
        if (other := source.names.imported.get(name)) is not None:
            module, inner = other
            return self._find(_from(source, place, module), inner, hops - 1, reads=reads) or Named(name, shown)
        for star in source.names.stars:
            if (found := self._find(_from(source, place, star), name, hops - 1, reads=reads)) is not None:
                return found
        if (between := _BETWEEN.get(place.language)) is None:
            return None
        return self._find(replace(place, module=f"{place.module}{between}{name}"), "", 0, reads=reads)

    def _read_from(self, place: _Place, hops: int) -> Iterator[_Source]:
        """What was read of a module: of those all of whose names it offers, and itself last."""
        source = self._sources.get(place)
        if source is None:
            return
        for star in source.names.stars if hops else ():
            yield from self._read_from(_from(source, place, star), hops - 1)
        yield source

    def _is_whole(self, place: _Place, around: tuple[Module | None, ...] = ()) -> bool:
        """Whether all names of a module are known; those of the modules ``around`` it are looked at already."""
        source = self._sources.get(place)
        if source is None or source.names.is_open or len(around) > _HOPS:
            return False
        if source.file in around:
            return True
        return all(self._is_whole(_from(source, place, star), (*around, source.file)) for star in source.names.stars)

    def _source(self, place: _Place, *, reads: bool) -> _Source | None:
        if place in self._sources or place in self._missing or not reads or self._spent >= CPU_S:
            return self._sources.get(place)
        began = time.thread_time()
        try:
            source = self._read(place)
        finally:
            self._spent += time.thread_time() - began
        if source is None:
            if len(self._missing) > _MAX_ASKED:
                self._missing.clear()
            self._missing.add(place)
            return None
        self._sources[place] = source
        self._version, self._members = self._version + 1, None
        self._size += source.size
        while self._sources and (self._size > MAX_BYTES or len(self._sources) > _MAX_MODULES):
            self._size -= self._sources.pop(next(iter(self._sources))).size
            self._asked.clear()  # what is dropped may be asked for again
            self._wanted.clear()
        return self._sources.get(place)

    def _read(self, place: _Place) -> _Source | None:
        """Read a module from the cache or its file."""
        found = self._located(place)
        if found is None:
            own = _own(sys.modules.get(place.module)) if place.language == "python" else None
            return _Source(own, own.size) if own is not None else None
        mark = mark_of((found.file, *found.others))
        if mark is None:  # removed since it was found
            return None
        names = load(found, mark)
        if names is None:
            data = _data(found)
            if data is None:
                return None
            began = time.thread_time()
            names = _READERS[place.language](plain(data.decode("utf-8", errors="replace")))
            if time.thread_time() - began > _WORTH_KEEPING:
                with contextlib.suppress(OSError):  # the next start reads it again
                    save(found, mark, names)
        return _Source(names, names.size, found, mark)


def _data(module: Module) -> bytes | None:
    """What is in the files of a module; None where one of them may not be read, or they are too long together."""
    parts = list[bytes]()
    for file in (module.file, *module.others):
        part = read_within(module.root, file, MAX_FILE - sum(map(len, parts)))
        if part is None:
            return None
        parts.append(part)
    return b"\n".join(parts)


def _place(module: str, language: str, folder: str) -> _Place:
    """The place of a module; Python's modules have the same name in all folders."""
    return _Place(module, language, "" if language == "python" else folder)


def _from(source: _Source, place: _Place, module: str) -> _Place:
    """The place of a module that another one names."""
    if source.file is None:
        return replace(place, module=module)
    if place.language == "python":
        return _Place(absolute(module, source.file), "python")
    is_near = place.language == "rust" or module.startswith(".")
    return replace(place, module=module, within=source.file if is_near else None)


def _joined(module: Import, language: str) -> str:
    """The name of a module that was imported as a whole, perhaps from its package."""
    between = _BETWEEN.get(language)
    return f"{module.module}{between}{module.name}" if module.name and between is not None else module.module


def _own(module: ModuleType | None) -> ModuleNames | None:
    """The names of a module in C of the standard library, which the process has loaded anyway."""
    spec = getattr(module, "__spec__", None)
    if spec is None or spec.name not in sys.stdlib_module_names or str(spec.origin).endswith(".py"):
        return None
    own = list(vars(module).items())  # another thread may import meanwhile
    names = {name: _signature(name, value) for name, value in own}
    members = {
        name: {inner: _signature(inner, one) for inner, one in list(vars(value).items())}
        for name, value in own
        if isinstance(value, type)
    }
    return ModuleNames(names, members)


def _signature(name: str, value: object) -> str:
    try:
        text = f"def {name}{signature(value)}" if callable(value) and not isinstance(value, type) else ""
    except (TypeError, ValueError):
        return ""
    return text if len(text) <= MAX_SIGNATURE else ""
