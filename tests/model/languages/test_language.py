"""The languages as a whole."""

import re

import pytest
from tree_sitter import Parser

from lacuna_model.syntax import LANGUAGES, language_for
from lacuna_model.syntax.faults import tree_faults


def test_languages_have_distinct_names_and_extensions() -> None:
    names = [language.name for language in LANGUAGES]
    assert len(names) == len(set(names)) == 20
    extensions = [extension for language in LANGUAGES for extension in language.extensions]
    assert len(extensions) == len(set(extensions))
    assert language_for("x/A.TSX") is not None
    for language in LANGUAGES:
        tree = Parser(language.grammar()).parse(b"")
        assert re.fullmatch(r"[a-z]+", language.name)
        assert isinstance(tree_faults(tree), frozenset)


@pytest.mark.parametrize(
    ("path", "name", "found"),
    [
        ("", "typescript.tsx", "tsx"),
        ("a.js", "javascript.jsx", "javascript"),
        ("", "python3", "python"),
        ("", "yaml.ansible", "yaml"),
        ("", "Python.django", "python"),
        ("a.py", "python2", "python"),
        ("a.rs", "nothing.known", "rust"),
        ("a.py", "typescript", "typescript"),
        ("", "nothing", None),
        ("notes.txt", "python2", None),
        ("", ".", None),
    ],
)
def test_an_unknown_name_is_taken_apart_before_the_files_name_counts(path: str, name: str, found: str | None) -> None:
    language = language_for(path, name)
    assert (language.name if language is not None else None) == found
