"""The languages of the corpus: which files belong to each, which files are tests, and whether a file parses."""

import ast
import gc
import re
import warnings
from functools import cache
from pathlib import PurePosixPath

from lacuna_model.languages.parsing import Parser, UnparsableError
from lacuna_model.languages.registry import language_for

# The languages of the corpus, each with the extensions that its file in ``languages`` names.
ACCEPTED = ("python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp")
# Stubs, and endings that few files have which belong to programs.
_LEFT_OUT = frozenset({".pyi", ".pyw", ".hxx", ".mts", ".cts"})
# Files with declarations only contain no code to fill in.
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
_CPP_HEADER = re.compile(
    r"^\s*(namespace\b|template\s*<|class\s+\w+|using\s+\w+|public:|private:)|\bstd::", re.MULTILINE
)
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "testdata", "__tests__", "spec", "specs", "e2e"})
_TEST_NAME = re.compile(r"test_.*\.py|.*_test\.(py|go|cc|cpp|c|rs)|conftest\.py|.*\.(test|spec)\.\w+|.*Tests?\.java")

# The preprocessor makes valid C and C++ files fail to parse with a grammar.
_NOT_CHECKED = frozenset({"c", "cpp"})


def language_of(path: str) -> str | None:
    """Returns the language of a file by its name, or None if the corpus does not accept the file."""
    name = path.lower()
    if name.endswith(_DECLARATIONS) or PurePosixPath(name).suffix in _LEFT_OUT:
        return None
    language = language_for(name)
    return language.name if language is not None and language.name in ACCEPTED else None


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
    if language not in ACCEPTED or language in _NOT_CHECKED:
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
    """Returns the tree-sitter parser of a language."""
    found = language_for(name=language)
    assert found is not None
    return found.parser()
