"""The languages of the corpus: which files belong to each, which files are tests, and whether a file parses."""

import ast
import gc
import importlib
import re
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

import tree_sitter

from lacuna_model.languages.parsing import Parser, UnparsableError
from lacuna_model.train.stored.packages import CorpusError

EXTENSIONS: Mapping[str, str] = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hpp": "cpp",
    ".hh": "cpp",
}
# Files with declarations only contain no code to fill in.
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
_CPP_HEADER = re.compile(
    r"^\s*(namespace\b|template\s*<|class\s+\w+|using\s+\w+|public:|private:)|\bstd::", re.MULTILINE
)
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "testdata", "__tests__", "spec", "specs", "e2e"})
_TEST_NAME = re.compile(r"test_.*\.py|.*_test\.(py|go|cc|cpp|c|rs)|conftest\.py|.*\.(test|spec)\.\w+|.*Tests?\.java")

_GRAMMARS: Mapping[str, tuple[str, str]] = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
}
# The preprocessor makes valid C and C++ files fail to parse with a grammar.
_NOT_CHECKED = frozenset({"c", "cpp"})


def language_of(path: str) -> str | None:
    """Returns the language of a file by its name, or None if the corpus does not accept the file."""
    name = path.lower()
    return None if name.endswith(_DECLARATIONS) else EXTENSIONS.get(PurePosixPath(name).suffix)


def language_of_text(path: str, text: str) -> str | None:
    """Returns the language of a file by its name and text; a ``.h`` file may be C or C++."""
    language = language_of(path)
    return "cpp" if language == "c" and path.endswith(".h") and _CPP_HEADER.search(text) else language


def is_test(path: str) -> bool:
    """Whether a path looks like a test."""
    parts = PurePosixPath(path)
    folders = {part.lower() for part in parts.parent.parts}
    return bool(folders & _TEST_FOLDERS) or _TEST_NAME.fullmatch(parts.name) is not None


def parses(text: str, language: str) -> bool:
    """Whether a file has no syntax errors; always true for languages that are not checked."""
    if language == "python":
        return python_tree(text) is not None
    if language not in _GRAMMARS or language in _NOT_CHECKED:
        return True
    try:
        return not parser_of(language).parse(text.encode()).root_node.has_error
    except UnparsableError:
        return False


def python_tree(text: str) -> ast.Module | None:
    """Parses Python; returns None if the text does not parse."""
    # The garbage collector would walk the growing tree repeatedly, which takes twice as long as the parsing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finally:
        if collecting:
            gc.enable()


@cache
def parser_of(language: str) -> Parser:
    """Returns the tree-sitter parser of a language; raises CorpusError if its package is not installed."""
    package, function = _GRAMMARS[language]
    try:
        grammar = getattr(importlib.import_module(package), function)()
    except ImportError as error:
        raise CorpusError(f"parsing {language} files needs the package {package.replace('_', '-')}") from error
    return Parser(tree_sitter.Language(grammar))
