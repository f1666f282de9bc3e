import pytest

from lacuna_model.syntax.text.anchors import Anchors


@pytest.mark.parametrize(
    ("before", "fill", "names"),
    [
        ("a: &b 1\nc: &d 2\ne: *", "", [b"d", b"b"]),
        ("a: &b 1\nc: [&bc 2, *", "b", [b"c", b""]),
        ("a: &b 1\nc: 2 ", "* 3", []),
        ("a: b&c\nd: *", "", []),
        ("a: &b 1\nc: d*", "", []),
    ],
)
def test_an_alias_is_completed_with_the_known_anchors_first(before: str, fill: str, names: list[bytes]) -> None:
    found = Anchors(before.encode()).completions(fill.encode(), lambda fill: iter([b"other"]))
    assert list(found) == [*names, b"other"]
