"""Finds the imports of a file, and the file of the workspace that each refers to: Python, JavaScript and TypeScript."""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_PYTHON_FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n;#]+)", re.MULTILINE)
_PYTHON_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n;#]+)", re.MULTILINE)
_SCRIPT_FROM = re.compile(
    r"\b(?:import|export)\s+(?:type\s+)?([\w$*{},](?:[\w$*{},\s]*[\w$*{},])?)\s+from\s*['\"]([^'\"\n]+)['\"]"
)
_SCRIPT_REQUIRE = re.compile(
    r"\b(?:const|let|var)\s+([\w$]+|\{[^}]*\})\s*=\s*(?:await\s+)?(?:require|import)\(\s*['\"]([^'\"\n]+)['\"]\s*\)"
)
_SCRIPT_NAMED = re.compile(r"\{([^}]*)\}")
_COMMENT = re.compile(r"#[^\n]*|//[^\n]*")
_SCRIPT_ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})


@dataclass(frozen=True, slots=True)
class Import:
    """A name that a file imports: ``name`` of ``module``, or the module itself where ``name`` is ""."""

    module: str
    name: str = ""


def imports(text: str, language: str) -> dict[str, Import]:
    """The import behind every local name; a star import has the key ``*module``."""
    if language == "python":
        return dict(_python(text))
    return dict(_script(text)) if language in _SCRIPTS else {}


def module_file(wanted: Import, path: str, language: str, by_stem: Mapping[str, Collection[str]]) -> str | None:
    """The file of the workspace that an import in ``path`` refers to; None where it is outside the workspace.

    ``by_stem`` maps the last part of a module's name to all paths of the workspace that may have it.
    """
    if language == "python":
        module = wanted.module
        if module.startswith("."):
            module = _python_relative(module, path)
        # The name may be a module of its own.
        inner = _among(by_stem, f"{module}/{wanted.name}".replace(".", "/"), path) if wanted.name else None
        return inner or _among(by_stem, module.replace(".", "/"), path)
    module = wanted.module
    if module.startswith("."):
        module = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        exact = _among(by_stem, module, path, whole=True)
        return exact or _among(by_stem, _without_ending(module), path, whole=True)
    # `@/x` and `~/x`: bundlers are configured to read these prefixes as the root of the sources.
    return _among(by_stem, module.removeprefix("@/").removeprefix("~/"), path) if "/" in module else None


def stem(path: str) -> str:
    """The path of a file without the parts that an import omits: its ending, and `__init__` or `index`."""
    bare = _without_ending(path)
    folder, _, name = bare.rpartition("/")
    return folder if name in ("__init__", "index") and folder else bare


def _among(by_stem: Mapping[str, Collection[str]], module: str, path: str, *, whole: bool = False) -> str | None:
    """The file nearest to ``path`` whose stem is ``module`` or, unless ``whole``, ends in it; None if there is none."""
    module = module.strip("/")
    found = [
        other
        for other in by_stem.get(module.rpartition("/")[2], ())
        if stem(other) == module or (not whole and stem(other).endswith(f"/{module}"))
    ]
    return min(found, key=lambda other: (-len(posixpath.commonprefix([other, path])), len(other), other), default=None)


def _without_ending(path: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.with_suffix("")) if pure.suffix in (".py", ".pyi", *_SCRIPT_ENDINGS) else path


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
    for pattern in (_SCRIPT_FROM, _SCRIPT_REQUIRE):
        for match in pattern.finditer(text):
            clause, module = _COMMENT.sub("", match[1]), match[2]
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
                    yield words[0], Import(module, "default" if pattern is _SCRIPT_FROM else "")
