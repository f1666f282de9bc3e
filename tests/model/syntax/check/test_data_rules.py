"""Roots, raw characters, tags and anchors: what the grammars of data take and its readers do not."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.check.document import Document

# A text with its gap that no strict parser takes, a fill that is wrong, and one that is not.
WRONG = {
    "json: two roots": ("json", '{"a": "\tb"}\n', "\n", "{}", "// c"),
    "json: the end of a line in a string": ("json", '{"a": "\tb", "c": "', '"}\n', "d\ne", "d\\ne"),
    "yaml: an unknown anchor": ("yaml", "a: &b 1\nc: *d\ne: *", "\n", "f", "b"),
    "html: an element without an end": ("html", "<p>a", "</p>\n", "<b>c", "<b>c</b>"),
    "html: an end too many": ("html", "<div>a", "</div>\n", "</b>", "<br>"),
    "html: an end of another one": ("html", "<div><b>a", "</div>\n", "</i>", "</b>"),
    "javascript: a tag that does not match": ("javascript", "const a = <b>c", ";\n", "</c>", "</b>"),
    "tsx: a tag that does not match": ("tsx", "const a = <b>c", ";\n", "</>", "</b>"),
    "tsx: a fragment that does not match": ("tsx", "const a = <>c", ";\n", "</b>", "</>"),
    "tsx: a tag of a member": ("tsx", "const a = <b.c>d</b.", ">;\n", "d", "c"),
    "tsx: an opening tag": ("tsx", "const a = <", ">b</c>;\n", "d", "c"),
    "tsx: an attribute in braces": ("tsx", "const a = <b ", "/>;\n", "{c}", "{...c}"),
    "tsx: types that read as a tag": ("tsx", "const a = ", "(b: T) => b;\n", "<T>", "<T,>"),
    "tsx: an inner tag": ("tsx", "const a = <b><c>d", "</b>;\n", "</b>", "</c>"),
}


def document(name: str, before: str, after: str) -> Document:
    return Document((before + after).encode(), [(len(before), len(before))], require(name))


@pytest.mark.parametrize("case", WRONG)
def test_it_is_refused(case: str) -> None:
    name, before, after, bad, good = WRONG[case]
    for text, valid in ((bad, False), (good, True)):
        assert document(name, before, after).check([text.encode()]).valid == valid
        assert document(name, before, after).check_fresh([text.encode()]).valid == valid


@pytest.mark.parametrize("case", WRONG)
def test_nor_is_it_taken_in_the_end(case: str) -> None:
    name, before, after, bad, _ = WRONG[case]
    own = document(name, before, after)
    own.displace()
    assert not own.check([bad.encode()]).valid


@pytest.mark.parametrize(
    ("name", "before", "after", "text"),
    [
        ("tsx", "const a = <b>c</d>;\nconst e = ", ";\n", "1"),
        ("html", "<div><b>a</div>\n<p>", "</p>\n", "c"),
        ("html", "<div><b>long\n", "\n</div>\n", "c"),
        ("html", "<ul><li>a", "</ul>\n", "<li>d"),
        ("html", "<input>", "<hr/>\n", "<IMG>"),
        ("json", '{"a": 1}\n{"b": 2}\n', "\n", " "),
    ],
)
def test_what_was_so_before_may_stay(name: str, before: str, after: str, text: str) -> None:
    assert document(name, before, after).check([text.encode()]).valid
    assert document(name, before, after).check_fresh([text.encode()]).valid


def test_a_tag_that_did_not_match_is_held_against_no_fill() -> None:
    own = document("tsx", "const a = <b>c", "</d>;\n")
    assert own.check([b"e"]).valid
    assert not own.check([b"<f>g</h>"]).valid
