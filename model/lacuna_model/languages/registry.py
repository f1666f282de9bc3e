"""All languages, and the language of a file."""

import difflib
from pathlib import PurePath

from lacuna_model.core.errors import RequestError
from lacuna_model.languages.c import CPP, C
from lacuna_model.languages.data import JSON, TOML, YAML
from lacuna_model.languages.go import GO
from lacuna_model.languages.java import CSHARP, JAVA
from lacuna_model.languages.javascript import JAVASCRIPT, TSX, TYPESCRIPT
from lacuna_model.languages.kotlin import KOTLIN
from lacuna_model.languages.language import Language
from lacuna_model.languages.python import PYTHON
from lacuna_model.languages.rust import RUST
from lacuna_model.languages.web import CSS, HTML, PHP
from lacuna_model.languages.word_blocks import BASH, LUA, RUBY

LANGUAGES: tuple[Language, ...] = (
    PYTHON,
    JAVASCRIPT,
    TYPESCRIPT,
    TSX,
    GO,
    RUST,
    JAVA,
    C,
    CPP,
    JSON,
    BASH,
    CSHARP,
    RUBY,
    PHP,
    LUA,
    HTML,
    CSS,
    YAML,
    TOML,
    KOTLIN,
)

_BY_NAME = {name: language for language in LANGUAGES for name in (language.name, *language.aliases)}
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}


def language_for(path: str = "", name: str = "") -> Language | None:
    """Return the language called ``name``, else that of the path's extension; None if both are unknown.

    Of a name such as ``typescript.tsx``, with which an editor names several, the last known part counts.
    """
    called = name.lower()
    for known in (called, *reversed(called.split("."))):
        if known in _BY_NAME:
            return _BY_NAME[known]
    return _BY_EXTENSION.get(PurePath(path).suffix.lower())


def require_language(name: str) -> Language:
    """Return the language called ``name``. Raises RequestError that names similar languages, or all of them."""
    language = language_for(name=name)
    if language is not None:
        return language
    near = list(dict.fromkeys(_BY_NAME[one].name for one in difflib.get_close_matches(name.lower(), _BY_NAME, n=3)))
    known = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(one.name for one in LANGUAGES)}"
    raise RequestError(f"unknown language {name!r}; {known}")
