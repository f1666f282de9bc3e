"""The index of the names that installed packages offer to the files of a workspace.

Only modules that a file imports are read, and those that they take names from, within a bound of time, which bounds
the memory, too: of torch, numpy and pandas 3 MB are kept.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from types import ModuleType

from lacuna_model.core.background import Background
from lacuna_model.files.opening import read_within
from lacuna_model.snippets.format import plain
from lacuna_model.snippets.imports import Import
from lacuna_model.snippets.packages import declared_module, python_module, script_module
from lacuna_model.snippets.packages.environment import SCRIPTS, Environment, Module, absolute
from lacuna_model.snippets.packages.module_names import MAX_SIGNATURE, ModuleNames, Named, TooLongError

# What an index may take: processor time (s) from its start on, and bytes of a file.
CPU_S = 2.0
MAX_FILE = 2_000_000
# How often (s) it is checked whether what was read has changed.
LOOK_AFTER = 5.0
# Names that were looked up are remembered.
_MAX_ASKED = 20_000
# How often a name may be taken from another module.
_HOPS = 4
Read = Callable[[str], ModuleNames]
_READERS: Mapping[str, Read] = {
    "python": python_module.read,
    **dict.fromkeys(SCRIPTS, script_module.read),
    **declared_module.READERS,
}
# What stands between the parts of a module's name where a module may be imported from another one.
_BETWEEN = {"python": ".", "rust": "/"}


@dataclass(frozen=True, slots=True)
class _Place:
    """A module as a file in ``folder`` of the workspace names it, or one beside the module ``within`` a package."""

    module: str
    language: str
    folder: str = ""
    within: Module | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """A module that was read, and the path that is shown of it.

    Without a ``file``, it is one that the interpreter of Lacuna was built with.
    """

    names: ModuleNames
    shown: str
    file: Module | None = None


class PackageIndex:
    """The names that packages offer to a workspace.

    Once started, one thread reads what was asked for, and who asks is told what is known so far. Before that, whoever
    asks reads. Some seconds after packages have changed on disk, all is read again.
    """

    languages = frozenset(_READERS)

    def __init__(self, root: Path) -> None:
        self._environment = Environment(root)
        self._sources: dict[_Place, _Source | None] = {}  # None: not there
        self._waiting: deque[tuple[_Place, str]] = deque()
        self._asked: set[tuple[_Place, str]] = set()
        self._version = 0  # of the sources
        self._members = (-1, frozenset[str]())  # with their version
        self._spent, self._looks_at = 0.0, 0.0
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
    def members(self) -> frozenset[str]:
        """The names that anything read so far has behind a dot: those of modules and of their classes."""
        version = self._version  # a module may come meanwhile, in the thread that reads them
        if self._members[0] != version:
            known = [source.names for source in list(self._sources.values()) if source is not None]
            own = (name for names in known for name in (*names.names, *names.imported))
            inner = (name for names in known for members in names.members.values() for name in members)
            self._members = version, frozenset((*own, *inner))
        return self._members[1]

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
        return {
            name: (source.shown, text)
            for source in self._of(module, language, folder)
            for name, text in source.names.names.items()
            if not name.startswith("_")
        }

    def names(self, module: Import, language: str, folder: str) -> set[str]:
        """All names that are known of an imported module, those that it takes from others among them."""
        known = (source.names for source in self._of(module, language, folder))
        return {name for names in known for name in (*names.names, *names.imported)}

    def _of(self, module: Import, language: str, folder: str) -> Iterator[_Source]:
        """What is known of a module that was imported as a whole, perhaps from its package."""
        between = _BETWEEN.get(language)
        is_inner = module.name and between is not None
        place = _place(f"{module.module}{between}{module.name}" if is_inner else module.module, language, folder)
        self._ask(place, "")
        return self._read_from(place, _HOPS)

    def _ask(self, place: _Place, name: str) -> Named | None:
        if place.language not in _READERS:
            return None
        if not self._background.is_started:
            self._look_again()
            return self._find(place, name, _HOPS, reads=True)
        if time.monotonic() >= self._looks_at:
            self._background.wake.set()
        found, key = self._find(place, name, _HOPS, reads=False), (place, name)
        if found is None and key not in self._asked:
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
        """Forget all if something has changed on disk, and the last look is long ago."""
        if time.monotonic() >= self._looks_at:
            self._looks_at = time.monotonic() + LOOK_AFTER
            if self._environment.has_changed():
                self._sources, self._asked, self._spent = {}, set(), 0.0
                self._version += 1

    def _find(self, place: _Place, name: str, hops: int, *, reads: bool) -> Named | None:
        """A name of a module ("": the module itself), also where it comes from another; ``reads`` what is not read."""
        source = self._source(place, reads=reads)
        if source is None:
            return None
        if not name:
            for star in source.names.stars if hops else ():
                self._find(_from(source, place, star), "", hops - 1, reads=reads)
            return Named(place.module, source.shown)
        if (signed := source.names.names.get(name)) is not None:
            return Named(name, source.shown, signed, source.names.members.get(name, {}))
        if not hops:
            return None
        if (other := source.names.imported.get(name)) is not None:
            module, inner = other
            return self._find(_from(source, place, module), inner, hops - 1, reads=reads) or Named(name, source.shown)
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
        if reads and place not in self._sources and self._spent < CPU_S:
            began = time.thread_time()
            try:
                self._sources[place] = self._read(place)
            finally:
                self._spent += time.thread_time() - began
            self._version += 1
        return self._sources.get(place)

    def _read(self, place: _Place) -> _Source | None:
        found = self._environment.find(place.module, place.language, place.folder, place.within)
        if found is None:
            own = _own(sys.modules.get(place.module)) if place.language == "python" else None
            return _Source(own, place.module) if own is not None else None
        self._environment.watch(found.file, *found.others)
        text, shown = "", found.file.relative_to(found.root).as_posix()
        for file in (found.file, *found.others):
            data = read_within(found.root, file, MAX_FILE - len(text))
            if data is None:  # it may not be read, or they are too long together
                return None
            text += plain(data.decode("utf-8", errors="replace")) + "\n"
        try:
            return _Source(_READERS[place.language](text), shown, found)
        except TooLongError:
            return None


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
