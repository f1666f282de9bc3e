"""The languages as a whole."""

import re

from tree_sitter import Parser

from lacuna_model.syntax import LANGUAGES, language_for
from lacuna_model.syntax.check.error_set import tree_faults


def test_languages_have_distinct_names_and_extensions() -> None:
    names = [language.name for language in LANGUAGES]
    assert len(names) == len(set(names)) == 20
    extensions = [extension for language in LANGUAGES for extension in language.extensions]
    assert len(extensions) == len(set(extensions))
    assert language_for("x/A.TSX") is not None
    assert language_for("x.py", name="nothing") is None
    for language in LANGUAGES:
        tree = Parser(language.grammar()).parse(b"")
        assert re.fullmatch(r"[a-z]+", language.name)
        assert isinstance(tree_faults(tree), frozenset)
