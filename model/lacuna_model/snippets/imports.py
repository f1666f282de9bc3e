"""Finds the imports of a file, and the files of the workspace that each refers to.

In Python, JavaScript, TypeScript, Go, Rust and Lua; where classes are imported, they are found by their names.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_PYTHON_FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^()]*\)|[^\n;#]+)", re.MULTILINE)
_PYTHON_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n;#]+)", re.MULTILINE)
_PYTHON_OPEN = re.compile(r"\s*from[ \t]+([.\w]+)[ \t]+import\b")
_SCRIPT_OPEN = re.compile(r"\s*(?:import|export)\b.*?\bfrom\s*['\"]([^'\"\n]+)['\"]")
_SCRIPT_FROM = re.compile(r"\bfrom\s*['\"]([^'\"\n]+)['\"]")
_SCRIPT_CLAUSE = re.compile(r"\b(?:import|export)\s+(?:type\s+)?(?=[\w$*{},])")
_SCRIPT_NAMES = re.compile(r"[\w$*{},\s]+")
# The characters before `from` in which a clause may begin.
_FAR = 4_000
_SCRIPT_REQUIRE = re.compile(
    r"\b(?:const|let|var)\s+([\w$]+|\{[^{}]*\})\s*=\s*(?:await\s+)?(?:require|import)\(\s*['\"]([^'\"\n]+)['\"]\s*\)"
)
_SCRIPT_NAMED = re.compile(r"\{([^}]*)\}")
_COMMENT = re.compile(r"#[^\n]*|//[^\n]*")
_SCRIPT_ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_GO_BLOCK = re.compile(r"^import[ \t]*(\([^)]*\)|[^\n]*)", re.MULTILINE)
_GO_IMPORT = re.compile(r"(?:([\w.]+)[ \t]+)?[\"`]([^\"`\n]+)[\"`]")
_GO_VERSION = re.compile(r"[/.]v\d+\Z")
_RUST_MOD = re.compile(r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?mod[ \t]+(\w+)[ \t]*;", re.MULTILINE)
_RUST_USE = re.compile(r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?use[ \t]+([^;]*);", re.MULTILINE)
_RUST_PART = re.compile(r"[{},]|[^{},\s]+(?:[ \t]+as[ \t]+\w+)?")
_RUST_ROOTS = ("crate", "self", "super")
_LUA_REQUIRE = re.compile(r"\blocal[ \t]+(\w+)[ \t]*=[ \t]*require[ \t]*\(?[ \t]*['\"]([^'\"\n]+)['\"]")
# The files of a language, and the name of the one that stands for its folder.
_FILES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "python": ((".py", ".pyi"), "__init__"),
    "rust": ((".rs",), "mod"),
    "lua": ((".lua",), "init"),
} | {name: (_SCRIPT_ENDINGS, "index") for name in _SCRIPTS}
_FOLDER_OF = {ending: name for endings, name in _FILES.values() for ending in endings}


@dataclass(frozen=True, slots=True)
class Import:
    """A name that a file imports: ``name`` of ``module``, or the module itself where ``name`` is ""."""

    module: str
    name: str = ""


def imports(text: str, language: str) -> dict[str, Import]:
    """The import behind every local name; a star import has the key ``*module``."""
    readers = {"python": _python, "go": _go, "rust": _rust, "lua": _lua} | dict.fromkeys(_SCRIPTS, _script)
    return dict(readers[language](text)) if language in readers else {}


def module_of(row: str, language: str) -> Import | None:
    """The module from which a row imports names, be they written yet or not; None if it is no such import."""
    pattern = {"python": _PYTHON_OPEN} | dict.fromkeys(_SCRIPTS, _SCRIPT_OPEN)
    match = pattern[language].match(row) if language in pattern else None
    return Import(match[1]) if match else None


def module_file(wanted: Import, path: str, language: str, by_stem: Mapping[str, Collection[str]]) -> str | None:
    """The file of the workspace that an import in ``path`` refers to; None where it is outside the workspace.

    ``by_stem`` maps the last part of a module's name to all paths of the workspace that may have it.
    """
    if language not in _FILES:
        return None
    module, endings = wanted.module, _FILES[language][0]
    if language in _SCRIPTS:
        if module.startswith("."):
            module = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
            exact = _among(by_stem, module, path, endings, whole=True)
            return exact or _among(by_stem, _without_ending(module), path, endings, whole=True)
        # `@/x` and `~/x`: bundlers are configured to read these prefixes as the root of the sources.
        module = module.removeprefix("@/").removeprefix("~/")
        return _among(by_stem, module, path, endings) if "/" in wanted.module else None
    if language == "python" and module.startswith("."):
        module = _python_relative(module, path)
    # The name may be a module of its own.
    module = module.replace(".", "/")
    inner = _among(by_stem, f"{module}/{wanted.name}".replace(".", "/"), path, endings) if wanted.name else None
    return inner or (_among(by_stem, module, path, endings) if module else None)


def module_files(
    wanted: Import,
    path: str,
    language: str,
    by_stem: Mapping[str, Collection[str]],
    by_folder: Mapping[str, Collection[str]],
) -> list[str]:
    """The files of the workspace that are the module an import in ``path`` names; none where it names what one has.

    ``by_folder`` maps the last part of a folder to all paths in it.
    """
    if language == "go":
        return _package(wanted.module, by_folder)
    own = wanted.name not in ("", "default")
    file = module_file(wanted, path, language, by_stem)
    if file is None or (own and stem(file).rpartition("/")[2] != wanted.name):
        return []
    return [file]


def _package(module: str, by_folder: Mapping[str, Collection[str]]) -> list[str]:
    """The files of a Go package: those of the folder that ends its path and says the most of it."""
    found: dict[str, list[str]] = {}
    for other in tuple(by_folder.get(module.rpartition("/")[2], ())):  # another thread may add some
        folder = posixpath.dirname(other)
        if other.endswith(".go") and not other.endswith("_test.go") and f"/{module}".endswith(f"/{folder}"):
            found.setdefault(folder, []).append(other)
    return sorted(found[max(found, key=len)]) if found else []


def stem(path: str) -> str:
    """The path of a file without the parts that an import omits: its ending, and `__init__`, `index` and the like."""
    bare = _without_ending(path)
    folder, _, name = bare.rpartition("/")
    return folder if name == _FOLDER_OF.get(PurePosixPath(path).suffix) and folder else bare


def _among(
    by_stem: Mapping[str, Collection[str]], module: str, path: str, endings: tuple[str, ...], *, whole: bool = False
) -> str | None:
    """The file nearest to ``path`` whose stem is ``module`` or, unless ``whole``, ends in it; None if there is none."""
    module = module.strip("/")
    found = [
        other
        for other in tuple(by_stem.get(module.rpartition("/")[2], ()))  # another thread may add some
        if other != path
        and other.endswith(endings)
        and (stem(other) == module or (not whole and stem(other).endswith(f"/{module}")))
    ]
    return min(found, key=lambda other: (-len(posixpath.commonprefix([other, path])), len(other), other), default=None)


def _without_ending(path: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.with_suffix("")) if pure.suffix in _FOLDER_OF else path


def _python_relative(module: str, path: str) -> str:
    name = module.lstrip(".")
    folder = posixpath.dirname(path)
    for _ in range(len(module) - len(name) - 1):
        folder = posixpath.dirname(folder)
    return posixpath.join(folder, name.replace(".", "/")) if name else folder


def _python(text: str) -> Iterator[tuple[str, Import]]:
    for match in _PYTHON_FROM.finditer(text):
        module = match[1]
        for part in _COMMENT.sub("", match[2]).strip("() \t\r\n").split(","):
            name, _, local = (word.strip() for word in part.partition(" as "))
            if name == "*":
                yield f"*{module}", Import(module, "*")
            elif name:
                yield local or name, Import(module, name)
    for match in _PYTHON_IMPORT.finditer(text):
        for part in match[1].split(","):
            name, _, local = (word.strip() for word in part.partition(" as "))
            if name:
                yield local or name.partition(".")[0], Import(name if local else name.partition(".")[0])
                if not local and "." in name:
                    yield name.rpartition(".")[2], Import(name)


def _script(text: str) -> Iterator[tuple[str, Import]]:
    required = ((_COMMENT.sub("", match[1]), match[2]) for match in _SCRIPT_REQUIRE.finditer(text))
    for clauses, whole in ((_script_clauses(text), "default"), (required, "")):
        for clause, module in clauses:
            for named in _SCRIPT_NAMED.findall(clause):
                for part in named.replace(":", " as ").split(","):
                    name, _, local = (word.strip() for word in part.strip().removeprefix("type ").partition(" as "))
                    if name:
                        yield local or name, Import(module, name)
            for part in _SCRIPT_NAMED.sub("", clause).split(","):
                words = part.replace("*", " ").split()
                if part.strip() == "*":
                    yield f"*{module}", Import(module, "*")
                elif words and words[0] == "as":
                    yield words[-1], Import(module)
                elif words:
                    yield words[0], Import(module, whole)


def _script_clauses(text: str) -> Iterator[tuple[str, str]]:
    """What stands between `import` or `export` and `from`, and the module; found backwards, since clauses are open."""
    last = 0
    for match in _SCRIPT_FROM.finditer(text):
        begin = max(last, match.start() - _FAR)
        last = match.end()
        heads = list(_SCRIPT_CLAUSE.finditer(text, begin, match.start()))
        clause = _COMMENT.sub("", text[heads[-1].end() : match.start()]) if heads else ""
        if _SCRIPT_NAMES.fullmatch(clause):
            yield clause.strip(), match[1]


def _go(text: str) -> Iterator[tuple[str, Import]]:
    for block in _GO_BLOCK.finditer(text):
        for match in _GO_IMPORT.finditer(_COMMENT.sub("", block[1])):
            yield match[1] or _GO_VERSION.sub("", match[2]).rpartition("/")[2], Import(match[2])


def _lua(text: str) -> Iterator[tuple[str, Import]]:
    for match in _LUA_REQUIRE.finditer(text):
        yield match[1], Import(match[2].replace(".", "/"))


def _rust(text: str) -> Iterator[tuple[str, Import]]:
    for match in _RUST_MOD.finditer(text):
        yield match[1], Import(match[1])
    for match in _RUST_USE.finditer(text):
        outer, last = [""], ""
        for part in _RUST_PART.findall(_COMMENT.sub("", match[1])):
            if part == "{":
                outer.append(last)
            elif part == "}":
                outer = outer[:-1] or [""]
            elif part != ",":
                path, _, local = (word.strip() for word in part.partition(" as "))
                last = f"{outer[-1]}{path}"
                kept = [name for name in last.removesuffix("::self").split("::") if name not in _RUST_ROOTS]
                if kept and kept[-1]:
                    module = "/".join(kept[:-1])
                    yield f"*{module}" if kept[-1] == "*" else local or kept[-1], Import(module, kept[-1])
