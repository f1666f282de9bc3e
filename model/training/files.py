"""Which files the corpus takes, and the reason to leave one out."""

import ast
import re
import warnings
from functools import cache, lru_cache
from pathlib import PurePosixPath

from lacuna_model.files.opening import generated_head, generated_name, minified
from lacuna_model.files.secrets import holds_credential
from lacuna_model.languages.parsing import Parser, UnparsableError
from lacuna_model.languages.registry import language_for
from training.licences import copyleft_header

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
MIN_BYTES = 200
MAX_BYTES = 200_000
_MAX_DIGITS = 0.2
_MIN_LETTERS = 0.25
_LITERAL_ITEMS = 24
_LITERAL_SHARE = 0.6
_SPACE = re.compile(r"\s")
_DIGIT = re.compile(r"\d")
_NOT_LETTER = re.compile(r"[\d_]|[^\w\s]")

_VENDORED = re.compile(
    r"(?i)(^|.*/)(_?vendor(ed|s)?|_vendored|contrib_vendor|third[-_]?party|3rd[-_]?party|externs?|externals?|node_modules"
    r"|bower_components|site-packages|bundled|deps|\.pc)/"
)
# Traces of compilers and bundlers: their output is no example of written JavaScript.
_COMPILED = re.compile(
    r"\b__esModule\b|//# sourceMappingURL=|\b__webpack_require__\b|\b_interopRequire\w+\("
    r"|\b__(awaiter|createBinding|assign)\b"
)


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


@lru_cache(maxsize=1)  # a file is asked about twice in turn
def python_tree(text: str) -> ast.Module | None:
    """Parses Python; returns None if the text does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def parser_of(language: str) -> Parser:
    """Returns the tree-sitter parser of a language."""
    found = language_for(name=language)
    assert found is not None
    return found.parser()


def drop_reason(path: str, data: bytes, language: str) -> str | None:
    """Returns the reason to leave a file out, by its path, size and text, or None."""
    file = PurePosixPath(path)
    if _VENDORED.match(path):
        return "vendored"
    if generated_name(file.name):
        return "generated"
    if not MIN_BYTES <= len(data) <= MAX_BYTES:
        return "too small" if len(data) < MIN_BYTES else "too large"
    text = decode(data)
    return "not text" if text is None else text_reason(text, language)


def text_reason(text: str, language: str) -> str | None:
    """Returns the reason to leave a text out, or None; cheap checks come first."""
    if generated_head(text) or (language == "javascript" and _COMPILED.search(text)):
        return "generated"
    if copyleft_header(text):
        return "licence of the file"
    if minified(text):
        return "long lines"
    if _mostly_digits(text):
        return "mostly data"
    if holds_credential(text):
        return "credential"
    if not parses(text, language):
        return "does not parse"
    long = language == "python" and _literal_lines(text) > _LITERAL_SHARE * (text.count("\n") + 1)
    return "mostly data" if long else None


def decode(data: bytes) -> str | None:
    """Decodes UTF-8 to text with plain line feeds and no byte order mark; returns None if it is not text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def _mostly_digits(text: str) -> bool:
    characters = len(text) - len(_SPACE.findall(text))
    letters = characters - len(_NOT_LETTER.findall(text))
    return len(_DIGIT.findall(text)) > _MAX_DIGITS * characters or letters < _MIN_LETTERS * characters


def _literal_lines(text: str) -> int:
    """Counts the lines inside long literal lists, sets, tuples and dictionaries of Python."""
    lines, tree = 0, python_tree(text)
    for statement in tree.body if tree is not None else ():
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        items = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", ())
        if value is not None and len(items) >= _LITERAL_ITEMS and value.end_lineno is not None:
            lines += value.end_lineno - value.lineno + 1
    return lines
