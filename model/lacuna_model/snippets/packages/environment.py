"""Finds the file of a module of an installed package: stubs first, and none that a link out of the environment names.

Python: the virtual environment in the workspace, then the standard library of the interpreter that runs Lacuna.
JavaScript and TypeScript: the folders ``node_modules`` of the workspace. Go and Rust: the folder ``vendor`` of the
workspace, then, in the version that ``go.mod`` or ``Cargo.lock`` names, what the user's Go or Cargo has downloaded,
and the sources of the standard library.
"""

import os
import re
import shutil
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from lacuna_model.files.opening import Mark, listed, mark, read_within

SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_VENVS = (".venv", "venv", "env")
_PYTHON_LIBRARY = re.compile(r"python3\.\d+t?")
_NAME = re.compile(r"[^\W\d]\w*")
_SCRIPT_ENDINGS = (".d.ts", ".d.mts", ".d.cts", ".ts", ".js", ".mjs", ".cjs")
_SCRIPT_SOURCE = re.compile(r"\.(?:d\.)?[cm]?[jt]sx?$")
_TYPED = re.compile(r"\.d\.[cm]?ts$")
# Parts of the path of a module of Go or Rust, and where the versions of packages are named.
_PART = re.compile(r"(?!\.+\Z)[\w.~-]{1,200}")
_GO_REQUIRED = re.compile(r"^(?:require)?[ \t]*([\w.~/-]{1,200})[ \t]+(v[\w.+-]{1,100})", re.MULTILINE)
_RUST_LOCKED = re.compile(r"^name = \"([\w-]{1,100})\"\nversion = \"([\w.+-]{1,100})\"", re.MULTILINE)
# What changes in a folder when packages are installed.
_TELLING = ("node_modules", "node_modules/.package-lock.json", "vendor", "go.mod", "Cargo.lock")
_RUST_STANDARD = ("std", "core", "alloc")
_GO_FILE = re.compile(r"\w{1,200}(?<!_test)\.go")
# Files of a package of Go, and bytes of a go.mod or a Cargo.lock that are read.
_MAX_FILES, _MAX_LOCK = 200, 2_000_000
# Bytes of a package.json that are read, and parts of a module's name.
_MAX_MANIFEST = 200_000
_MAX_PARTS = 12
_MAX_ENTRIES = 5_000
# Files that a module may be, for Go folders, the best first, each behind the folder that it may not lead out of.
Places = Iterator[tuple[Path, Path]]


@dataclass(frozen=True, slots=True)
class Module:
    """A module's file below the folder ``root``, and its further files.

    ``name`` is what a file outside of its package calls it.
    """

    root: Path
    file: Path
    name: str
    others: tuple[Path, ...] = ()


class Environment:
    """The packages that the files of the workspace at ``root`` import."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._marks: dict[Path, Mark] = {}
        self._sites: list[Path] | None = None

    def has_changed(self) -> bool:
        """Whether packages may have come, gone or changed since what was found last; then nothing is watched."""
        changed = any(mark(path) != old for path, old in list(self._marks.items()))
        if changed:
            self._marks, self._sites = {}, None
        return changed

    def watch(self, *paths: Path) -> None:
        """Let the sizes and modification times of some paths, which need not be there, tell of changes from now on."""
        for path in paths:
            if path not in self._marks:
                self._marks[path] = mark(path)

    def find(self, module: str, language: str, folder: str, within: Module | None) -> Module | None:
        """The file of a module as a file in ``folder`` of the workspace names it, or a module ``within`` a package."""
        between, part = (".", _NAME) if language == "python" else ("/", _PART)
        parts = module.split(between)
        if language not in SCRIPTS and (len(parts) > _MAX_PARTS or not all(map(part.fullmatch, parts))):
            return None
        if language == "python":
            places = self._python(parts)
        else:
            self.watch(*(place / name for place in self._above(folder) for name in _TELLING))
            if language == "go":
                places = self._go(parts, folder)
            elif language == "rust":
                places = self._rust(parts, folder, within)
            else:
                places = self._script(module, folder, within)
        found = _go_package if language == "go" else _module
        return next(filter(None, (found(root, path, module) for root, path in places)), None)

    def _go(self, parts: list[str], folder: str) -> Places:
        """A package of Go, whose files are those of a folder."""
        for vendor in (place / "vendor" for place in self._above(folder)):
            yield vendor, vendor.joinpath(*parts)
        required, cache = self._locked("go.mod", _GO_REQUIRED, folder), _go_cache()
        for count in range(len(parts), 0, -1):
            package = "/".join(parts[:count])
            if (version := required.get(package)) is not None:
                own = cache / f"{_escaped(package)}@{_escaped(version)}"
                self.watch(own)
                yield cache, own.joinpath(*parts[count:])
                return
        for library in (root / "src" for root in _go_roots() if "." not in parts[0]):
            yield library, library.joinpath(*parts)

    def _rust(self, parts: list[str], folder: str, within: Module | None) -> Places:
        """A module of a crate; within one, a path from its own place or from the top of the crate comes first."""
        if within is not None:
            top = next((one for one in within.file.parents if one.name == "src"), within.file.parent)
            own = within.file.parent / ("" if within.file.stem in ("lib", "mod") else within.file.stem)
            for base in (own, within.file.parent, top):
                yield from _rust_files(within.root, base, parts)
        crate, *inner = parts
        dashed = crate.replace("_", "-")
        for place in self._above(folder):
            for name in (crate, dashed):
                yield from _rust_files(place / "vendor", place / "vendor" / name / "src", inner)
        locked = self._locked("Cargo.lock", _RUST_LOCKED, folder)
        name = crate if crate in locked else dashed
        registries = _registries() if name in locked else []
        self.watch(*registries)
        for registry in registries:
            yield from _rust_files(registry, registry / f"{name}-{locked[name]}" / "src", inner)
        for library in _rust_libraries() if crate in _RUST_STANDARD else ():
            yield from _rust_files(library, library / crate / "src", inner)

    def _locked(self, file: str, pattern: re.Pattern[str], folder: str) -> dict[str, str]:
        """The versions of packages that a file beside the sources, or above them, names."""
        for place in self._above(folder):
            data = read_within(self._root, place / file, _MAX_LOCK)
            if data is not None:
                return dict(pattern.findall(data.decode(errors="replace")))
        return {}

    def _python(self, parts: list[str]) -> Places:
        if self._sites is None:
            self._sites = self._python_sites()
        for site in self._sites:
            for base in (site.joinpath(f"{parts[0]}-stubs", *parts[1:]), site.joinpath(*parts)):
                for ending in (".pyi", "/__init__.pyi", ".py", "/__init__.py"):
                    yield site, Path(f"{base}{ending}")

    def _python_sites(self) -> list[Path]:
        """The folders of Python's packages."""
        found = list[Path]()
        for name in _VENVS:
            venv = self._root / name
            self.watch(venv / "pyvenv.cfg", venv / "lib")
            if not venv.is_symlink() and (venv / "pyvenv.cfg").is_file():
                libraries = [venv / "Lib", *(venv / "lib" / one for one in _names(venv / "lib", _PYTHON_LIBRARY))]
                sites = [library / "site-packages" for library in libraries]
                self.watch(*sites)
                real = os.path.realpath(venv)
                found += [site for site in sites if site.is_dir() and Path(os.path.realpath(site)).is_relative_to(real)]
        library = sysconfig.get_path("stdlib")
        return [*found, Path(library)] if library else found

    def _script(self, module: str, folder: str, within: Module | None) -> Places:
        relative, parts = module.startswith("."), PurePosixPath(module).parts
        if not parts or len(parts) > _MAX_PARTS or module.startswith("/") or "\0" in module:
            return
        if relative and within is not None:
            yield from _script_files(within.root, within.file.parent / module)
        if relative or ".." in parts:
            return
        count = 2 if module.startswith("@") else 1
        package, inner = "/".join(parts[:count]), "/".join(parts[count:])
        typed = f"@types/{package.removeprefix('@').replace('/', '__')}"
        if module.startswith("node:"):
            package = typed = "@types/node"
            inner = module.removeprefix("node:")
        places = (place / "node_modules" for place in self._above(folder))
        for modules in (one for one in places if one.is_dir() and not one.is_symlink()):
            for name in (typed, package):  # types of their own are in few packages that have others, too
                if (manifest := _manifest(modules, modules / name)) is not None:
                    for entry in manifest.entries(inner):
                        yield from _script_files(modules, modules / name / entry)
        if ":" not in module:
            yield from self._script(f"node:{module}", folder, None)

    def _above(self, folder: str) -> Iterator[Path]:
        """A folder of the workspace, and those around it up to the root."""
        place = self._root / folder
        for parent in (place, *place.parents):
            if parent != self._root and self._root not in parent.parents:
                return
            yield parent


class _Manifest(msgspec.Struct, frozen=True):
    """What matters of a package.json: where its types and its code begin."""

    types: str = ""
    typings: str = ""
    main: str = ""
    module: str = ""
    exports: msgspec.Raw = msgspec.Raw(b"null")

    def entries(self, inner: str) -> list[str]:
        """The files that may be the module of the package's name, or one ``inner`` to it, the best first."""
        exports = msgspec.json.decode(self.exports)
        key = f"./{inner}" if inner else "."
        chosen = exports.get(key, None if inner else exports) if isinstance(exports, dict) else exports
        exported = list(_strings(chosen, _MAX_PARTS))
        typed = [one for one in exported if _TYPED.search(one)]
        named = [inner] if inner else [one for one in (self.types, self.typings) if one]
        return [*typed, *named, *exported, *(one for one in (self.main, self.module) if one and not inner), "index"]


def _strings(value: object, depth: int) -> Iterator[str]:
    """The texts in the values of nested objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth:
        for inner in value.values():
            yield from _strings(inner, depth - 1)


def _manifest(modules: Path, package: Path) -> _Manifest | None:
    file = _inside(modules, package / "package.json")
    data = read_within(modules, file, _MAX_MANIFEST) if file is not None else None
    try:
        return msgspec.json.decode(data, type=_Manifest) if data is not None else None
    except (msgspec.MsgspecError, RecursionError):
        return _Manifest() if data is not None else None


def _script_files(root: Path, named: Path) -> Places:
    """The files that an import may name, types first."""
    path = Path(os.path.normpath(named))
    bare = _SCRIPT_SOURCE.sub("", path.name)
    stems = [path.with_name(bare), path] if bare != path.name else [path]
    for stem in (*stems, path / "index"):
        for ending in _SCRIPT_ENDINGS:
            yield root, stem.with_name(stem.name + ending)
    yield root, path


def _inside(root: Path, file: Path) -> Path | None:
    """The real path of a regular file below a folder; None where it is none, or a link leads out of the folder."""
    try:
        real, top = Path(os.path.realpath(file)), Path(os.path.realpath(root))
        return root / real.relative_to(top) if real.is_file() and real.is_relative_to(top) else None
    except (OSError, ValueError):
        return None


def _module(root: Path, path: Path, name: str) -> Module | None:
    """The module that is a file."""
    file = _inside(root, path)
    return Module(root, file, name) if file is not None else None


def _go_package(root: Path, folder: Path, name: str) -> Module | None:
    """The package of Go in a folder below ``root``, unless that is a link."""
    if root.is_symlink():
        return None
    names = _names(folder, _GO_FILE)
    found = list(filter(None, (_inside(root, folder / one) for one in names[:_MAX_FILES])))
    if not found or len(found) < len(names):  # what is left out may declare names
        return None
    return Module(root, found[0], name, tuple(found[1:]))


def _go_cache() -> Path:
    """Where Go keeps the modules that it has downloaded."""
    if cache := os.environ.get("GOMODCACHE"):
        return Path(cache)
    path = os.environ.get("GOPATH", "").partition(os.pathsep)[0]
    return (Path(path) if path else Path.home() / "go") / "pkg" / "mod"


def _go_roots() -> list[Path]:
    """Where Go may be installed."""
    program = shutil.which("go")
    named = [os.environ.get("GOROOT"), str(Path(os.path.realpath(program)).parents[1]) if program else None]
    return [Path(one) for one in (*named, "/usr/local/go", "/usr/lib/go") if one]


def _escaped(path: str) -> str:
    """A path as Go's cache names it, where files may not differ in case alone."""
    return re.sub(r"[A-Z]", lambda letter: f"!{letter[0].lower()}", path)


def _registries() -> list[Path]:
    """Where Cargo keeps the sources of crates that it has downloaded."""
    sources = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "registry" / "src"
    return [sources / name for name in _names(sources, _PART)]


def _rust_libraries() -> list[Path]:
    """Where the sources of Rust's standard library are installed."""
    chains = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup") / "toolchains"
    return [chains / name / "lib/rustlib/src/rust/library" for name in _names(chains, _PART)]


def _rust_files(root: Path, base: Path, parts: list[str]) -> Places:
    """The files that a module of a crate may be in whose sources are in a folder."""
    if not root.is_symlink():
        inner = base.joinpath(*parts)
        names = (inner.with_name(f"{inner.name}.rs"), inner / "mod.rs") if parts else (inner / "lib.rs",)
        yield from ((root, name) for name in names)


def absolute(module: str, within: Module) -> str:
    """The whole name of a module that a module of a package names, which may do so from its own place."""
    name = module.lstrip(".")
    dots = len(module) - len(name)
    if not dots:
        return module
    is_package = within.file.name.startswith("__init__.")
    parts = within.name.split(".")
    kept = parts[: len(parts) - dots + is_package] if dots - is_package else parts
    return ".".join([*kept, *([name] if name else [])])


def _names(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """The entries of a folder with such a name; none where it cannot be listed."""
    return [entry.name for entry in listed(folder, _MAX_ENTRIES) if pattern.fullmatch(entry.name)]
