"""Finds the file of a module of an installed package: stubs first, and none that a link out of the environment names.

Python: the virtual environment in the workspace, then the standard library of the interpreter that runs Lacuna.
JavaScript and TypeScript: the folders ``node_modules`` of the workspace.
"""

import os
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import msgspec

from lacuna_model.files.opening import read_within

SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_VENVS = (".venv", "venv", "env")
_PYTHON_LIBRARY = re.compile(r"python3\.\d+t?")
_NAME = re.compile(r"[^\W\d]\w*")
_SCRIPT_ENDINGS = (".d.ts", ".d.mts", ".d.cts", ".ts", ".js", ".mjs", ".cjs")
_SCRIPT_SOURCE = re.compile(r"\.(?:d\.)?[cm]?[jt]sx?$")
_TYPED = re.compile(r"\.d\.[cm]?ts$")
_DISTRIBUTION = re.compile(r"(.+?)-([^-]+)\.dist-info")
# Bytes of a package.json that are read, and parts of a module's name.
_MAX_MANIFEST = 200_000
_MAX_PARTS = 12
_MAX_ENTRIES = 5_000


@dataclass(frozen=True, slots=True)
class Module:
    """A module's file below the folder ``root``; ``name`` is what a file outside of its package calls it.

    ``package`` and ``version`` are those of the package; the version is "" where none is known.
    """

    root: Path
    file: Path
    name: str
    package: str
    version: str = ""

    @property
    def shown(self) -> str:
        """The path of the file from its root."""
        return self.file.relative_to(self.root).as_posix()


class Environment:
    """The packages that the files of the workspace at ``root`` import."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def find(self, module: str, language: str, folder: str, within: Module | None) -> Module | None:
        """The file of a module as a file in ``folder`` of the workspace names it, or a module ``within`` a package."""
        if language == "python":
            return self._python(module)
        return self._script(module, folder, within) if language in SCRIPTS else None

    def _python(self, module: str) -> Module | None:
        parts = module.split(".")
        if len(parts) > _MAX_PARTS or not all(map(_NAME.fullmatch, parts)):
            return None
        for site, versions in self._sites:
            stubs = site.joinpath(f"{parts[0]}-stubs", *parts[1:])
            for base in (stubs, site.joinpath(*parts)):
                for name in (f"{base}.pyi", f"{base}/__init__.pyi", f"{base}.py", f"{base}/__init__.py"):
                    if (file := _inside(site, Path(name))) is not None:
                        return Module(site, file, module, parts[0], versions.get(parts[0].lower(), ""))
        return None

    @cached_property
    def _sites(self) -> list[tuple[Path, dict[str, str]]]:
        """The folders of Python's packages, each with the versions by package."""
        found = list[tuple[Path, dict[str, str]]]()
        for name in _VENVS:
            venv = self._root / name
            if not venv.is_symlink() and (venv / "pyvenv.cfg").is_file():
                libraries = [venv / "Lib", *(venv / "lib" / one for one in _listed(venv / "lib", _PYTHON_LIBRARY))]
                sites = (library / "site-packages" for library in libraries)
                found += [(site, _versions(site)) for site in sites if _is_own_folder(venv, site)]
        library = sysconfig.get_path("stdlib")
        return [*found, (Path(library), {})] if library else found

    def _script(self, module: str, folder: str, within: Module | None) -> Module | None:
        relative, parts = module.startswith("."), PurePosixPath(module).parts
        if not parts or len(parts) > _MAX_PARTS or module.startswith("/") or "\0" in module:
            return None
        if within is not None and relative:
            path = Path(os.path.normpath(within.file.parent / module))
            file = _script_file(within.root, path)
            return Module(within.root, file, str(path), within.package, within.version) if file else None
        if relative or ".." in parts:
            return None
        count = 2 if module.startswith("@") else 1
        package, inner = "/".join(parts[:count]), "/".join(parts[count:])
        typed = f"@types/{package.removeprefix('@').replace('/', '__')}"
        if module.startswith("node:"):
            package = typed = "@types/node"
            inner = module.removeprefix("node:")
        for modules in self._node_modules(folder):
            for name in (typed, package):  # types of their own are in few packages that have others, too
                own = modules / name
                if (manifest := _manifest(modules, own)) is None:
                    continue
                for entry in manifest.entries(inner):
                    if (file := _script_file(modules, Path(os.path.normpath(own / entry)))) is not None:
                        return Module(modules, file, module, name, manifest.version)
        return None if ":" in module else self._script(f"node:{module}", folder, None)

    def _node_modules(self, folder: str) -> Iterator[Path]:
        """The folders of packages that a file in a folder of the workspace sees."""
        place = self._root / folder
        for parent in (place, *place.parents):
            if parent != self._root and self._root not in parent.parents:
                return
            if (parent / "node_modules").is_dir() and not (parent / "node_modules").is_symlink():
                yield parent / "node_modules"


class _Manifest(msgspec.Struct, frozen=True):
    """What matters of a package.json: where its types and its code begin."""

    version: str = ""
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


def _script_file(root: Path, path: Path) -> Path | None:
    """The file that an import names, its types first."""
    bare = _SCRIPT_SOURCE.sub("", path.name)
    stems = [path.with_name(bare), path.with_name(path.name)] if bare != path.name else [path]
    for stem in (*stems, path / "index"):
        for ending in _SCRIPT_ENDINGS:
            if (file := _inside(root, stem.with_name(stem.name + ending))) is not None:
                return file
    return _inside(root, path)


def _inside(root: Path, file: Path) -> Path | None:
    """The real path of a regular file below a folder; None where it is none, or a link leads out of the folder."""
    try:
        real, top = Path(os.path.realpath(file)), Path(os.path.realpath(root))
        return root / real.relative_to(top) if real.is_file() and real.is_relative_to(top) else None
    except (OSError, ValueError):
        return None


def _is_own_folder(venv: Path, site: Path) -> bool:
    return site.is_dir() and Path(os.path.realpath(site)).is_relative_to(os.path.realpath(venv))


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


def _versions(site: Path) -> dict[str, str]:
    """The versions of the packages in a folder, by their names in lower case."""
    found = map(_DISTRIBUTION.fullmatch, _listed(site, _DISTRIBUTION))
    return {match[1].lower().replace("-", "_"): match[2] for match in found if match is not None}


def _listed(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """The entries of a folder with such a name; none where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            some = (entry.name for _, entry in zip(range(_MAX_ENTRIES), entries, strict=False))
            return sorted(name for name in some if pattern.fullmatch(name))
    except OSError:
        return []
