import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_lsp.suggest.suggestions import KEPT, CursorPlace, Suggestion, Suggestions, distinct

URI = "file:///work/code.py"


def suggestion(before: str, text: str, after: str = "\n", request: str = "one") -> Suggestion:
    return Suggestion(CursorPlace(URI, before, after), (text,), request, several=False)


def remaining(kept: Suggestions, before: str, after: str = "\n", uri: str = URI) -> list[str] | None:
    match = kept.at(CursorPlace(uri, before, after))
    return None if match is None else [text for _, text in match.texts]


@given(before=st.text(max_size=20), text=st.text(min_size=1, max_size=20), after=st.text(max_size=5), data=st.data())
def test_typing_a_part_of_a_suggestion_leaves_the_rest(before: str, text: str, after: str, data: st.DataObject) -> None:
    kept = Suggestions()
    kept.keep(suggestion(before, text, after))
    typed = data.draw(st.integers(0, len(text) - 1))
    rest = remaining(kept, before + text[:typed], after)
    assert rest is not None
    assert text.endswith(rest[0])


@pytest.mark.parametrize(
    ("before", "after", "rest"),
    [
        ("x = ", "\n", ["total(a, b)"]),
        ("x = to", "\n", ["tal(a, b)"]),
        ("x = total(", ")\n", ["a, b"]),
        ("x = total(a, b", ")\n", None),
        ("x = total(a, b)", "\n", None),
        ("x = su", "\n", None),
        ("x = to", " more\n", None),
        ("x =", "\n", None),
        ("y = ", "\n", None),
    ],
)
def test_a_kept_suggestion_applies_only_where_it_continues_the_text(
    before: str, after: str, rest: list[str] | None
) -> None:
    kept = Suggestions()
    kept.keep(suggestion("x = ", "total(a, b)"))
    assert remaining(kept, before, after) == rest


def test_a_suggestion_does_not_apply_to_another_document() -> None:
    kept = Suggestions()
    kept.keep(suggestion("x = ", "1"))
    assert remaining(kept, "x = ", uri="file:///work/other.py") is None


def test_a_place_without_a_suggestion_is_remembered_too() -> None:
    kept = Suggestions()
    kept.keep(Suggestion(CursorPlace(URI, "x", "\n"), (), "one", several=False))
    assert remaining(kept, "x") == []


def test_only_the_text_near_the_cursor_identifies_a_place() -> None:
    kept = Suggestions()
    kept.keep(suggestion("a" * 3000 + "x = ", "1", "\n" + "b" * 3000))
    assert remaining(kept, "c" + "a" * 2999 + "x = ", "\n" + "b" * 2999 + "c") == ["1"]
    assert remaining(kept, "a" * 2900 + "c" + "a" * 99 + "x = ", "\n" + "b" * 3000) is None


def test_the_oldest_suggestion_is_dropped_and_a_closed_document_is_forgotten() -> None:
    kept = Suggestions()
    for number in range(KEPT + 1):
        kept.keep(suggestion(f"x{number} = ", "1", request=str(number)))
    assert remaining(kept, "x0 = ") is None
    assert remaining(kept, "x1 = ") == ["1"]
    kept.forget(URI)
    assert remaining(kept, "x1 = ") is None


def test_typing_something_else_rejects_a_suggestion_only_at_its_place() -> None:
    kept, place = Suggestions(), CursorPlace(URI, "x = ", "\n")
    kept.show(place, ["wrong"], "one")
    assert kept.typed(CursorPlace(URI, "x = w", "\n")) is None
    assert kept.typed(CursorPlace(URI, "x = wrong + 1", "\n")) is None
    assert not kept.rejected(place, "wrong")
    assert kept.typed(CursorPlace(URI, "x = wx", "\n")) == "one"
    assert kept.rejected(place, "wrong")
    assert not kept.rejected(CursorPlace(URI, "y = ", "\n"), "wrong")
    assert not kept.rejected(place, "right")


def test_a_jump_of_the_cursor_rejects_nothing() -> None:
    kept, place = Suggestions(), CursorPlace(URI, "x = ", "\n")
    kept.show(place, ["wrong"], "one")
    assert kept.typed(CursorPlace(URI, "quite another place", "\n")) is None
    assert not kept.rejected(place, "wrong")


def test_equal_and_empty_candidates_are_dropped() -> None:
    assert list(distinct(["a", " a", "", "b"])) == [(0, "a"), (3, "b")]
