from tests.model.syntax.drive import require

from lacuna_model.syntax.text.nested import completed, nested_in


def test_only_the_ends_that_a_language_has_are_completed() -> None:
    assert len(nested_in(require("html"), b"", b"")) == 1
    assert len(nested_in(require("tsx"), b"", b"")) == 2
    assert nested_in(require("go"), b"", b"") == []


def test_open_elements_are_closed_before_the_brackets() -> None:
    ends = completed(lambda _fill: iter([b")"]), nested_in(require("tsx"), b"f(<a><b>", b""))
    assert next(ends(b"c")) == b"</b></a>)"
