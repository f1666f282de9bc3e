import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.context import Layout, Stream, heal, lay_out
from lacuna_model.tokenizer import Tokenizer

RESERVE, HOLE = 100, 40
SEGMENTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=2, max_size=5)


def laid_out(tokenizer: Tokenizer, *segments: str, snippets: str = "") -> Layout:
    return lay_out(segments, tokenizer, reserve=lambda _: RESERVE, hole=HOLE, snippets=snippets)


def text_of(tokenizer: Tokenizer, stream: Stream) -> str:
    return tokenizer.decode(stream.ids)


def test_one_gap(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, "def f(", ")\n")
    (gap,) = layout.gaps
    assert text_of(tokenizer, layout.before) == "def f"
    assert (gap.parent, gap.prefix) == ("before", b"(")
    assert gap.parent_len == gap.position == len(layout.before)
    assert layout.before.positions == tuple(range(len(layout.before)))
    assert text_of(tokenizer, layout.after) == ")\n"
    start = len(layout.before) + RESERVE
    assert layout.after.positions == tuple(range(start, start + 3))
    assert layout.before.ids[0] == layout.after.ids[0] == tokenizer.document_id


def test_several_gaps_leave_holes_in_the_text_after_the_first(tokenizer: Tokenizer) -> None:
    layout = laid_out(tokenizer, "a", "bc", "dg", "f")
    first, second, third = layout.gaps
    assert (first.prefix, second.prefix, third.prefix) == (b"a", b"c", b"g")
    assert [gap.parent for gap in layout.gaps] == ["before", "after", "after"]
    assert text_of(tokenizer, layout.after) == "bdf"
    start = len(layout.before) + RESERVE
    # The document token and "b", the first hole where "c" was healed away, "d", the next hole, "f".
    assert second.position == start + 2
    assert third.position == second.position + HOLE + 1
    assert layout.after.positions == (start, start + 1, second.position + HOLE, third.position + HOLE)
    assert (second.parent_len, third.parent_len) == (2, 3)


@pytest.mark.parametrize("segments", [("", ""), ("", "x"), ("x", ""), ("", "", ""), ("x", "", "", "y")])
def test_empty_segments(tokenizer: Tokenizer, segments: tuple[str, ...]) -> None:
    layout = laid_out(tokenizer, *segments)
    assert len(layout.gaps) == len(segments) - 1
    assert [gap.prefix for gap in layout.gaps] == [segment.encode() for segment in segments[:-1]]
    assert layout.before.ids == (tokenizer.document_id,)
    # Adjacent gaps stand behind the same token, each in a hole of its own.
    positions = [gap.position for gap in layout.gaps]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize(("before", "prefix"), [("a", b"a"), ("", b"")])
def test_snippets_open_what_stands_before_and_are_never_healed(
    tokenizer: Tokenizer, before: str, prefix: bytes
) -> None:
    layout = laid_out(tokenizer, before, "b", snippets="# other.py\nx = 1\n")
    assert text_of(tokenizer, layout.before) == "# other.py\nx = 1\n"
    assert layout.gaps[0].prefix == prefix
    assert layout.gaps[0].parent_len == len(layout.before)


def test_the_reserve_may_depend_on_what_stands_before(tokenizer: Tokenizer) -> None:
    layout = lay_out(["abcd", ""], tokenizer, reserve=lambda num_before: 50 - num_before, hole=HOLE)
    assert layout.after.positions == (50,)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("", b""),
        ("x", b"x"),
        ("x = def", b" def"),
        ("if a:\n    ", b" "),
        ("if a:\n\t\t", b"\t"),
        ("if a:\n", b"\n"),
        ("caf\u00e9", b""),
        ("s = '\U0001f600", b""),
        ("s = '\U0001f600'", b"'"),
    ],
    ids=["nothing", "one-token", "word", "indent", "tabs", "line-end", "two-bytes", "four-bytes", "behind-four-bytes"],
)
def test_healing_takes_a_whole_token_unless_it_ends_a_character(tokenizer: Tokenizer, text: str, prefix: bytes) -> None:
    ids, healed = heal(text, tokenizer)
    assert healed == prefix
    assert tokenizer.decode_bytes(ids) + prefix == text.encode()


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("if a:\n    ", "return"),
        ("if a:\n        ", "return"),
        ("if a:\n\n    ", "return"),
        ("if a:\r\n  ", "return"),
        ("if a: = ", "return"),
        ("    retu", "rn x"),
        ("import javasc", "ript"),
        ("x = Versio", "nSet()"),
        ("x = 1\n\n", "def f():"),
        ("}\n\n\n", "class A:"),
        ("def f():\n    x = 1\n\n", "    return x"),
        ("def f():\n    return 1\n\n\n", "def g():"),
    ],
)
def test_what_is_left_is_what_natural_text_has(real_tokenizer: Tokenizer, before: str, behind: str) -> None:
    ids, prefix = heal(before, real_tokenizer)
    natural = real_tokenizer.encode(before + behind)
    assert natural[: len(ids)] == ids
    assert real_tokenizer.token_bytes(natural[len(ids)]).startswith(prefix)


@given(st.text("ab rt\n\t(.é😀", max_size=20))
def test_what_is_healed_begins_a_token_and_ends_the_text(real_tokenizer: Tokenizer, text: str) -> None:
    ids, prefix = heal(text, real_tokenizer)
    assert real_tokenizer.decode_bytes(ids) + prefix == text.encode()
    assert prefix.decode() in text
    assert not prefix or len(real_tokenizer.encode(prefix.decode())) == 1 or real_tokenizer.is_begun(prefix)


@settings(deadline=None)
@given(SEGMENTS, st.text(max_size=5))
def test_a_layout_holds_all_the_text_in_order(tokenizer: Tokenizer, segments: list[str], snippets: str) -> None:
    layout = laid_out(tokenizer, *segments, snippets=snippets.encode(errors="ignore").decode())
    # Reading the streams up to each gap, with what was healed, gives the segments back.
    streams = {"before": layout.before, "after": layout.after}
    read = []
    opening = tokenizer.encode(snippets.encode(errors="ignore").decode())
    assert layout.before.ids[: 1 + len(opening)] == (tokenizer.document_id, *opening)
    starts = {"before": 1 + len(opening), "after": 0}
    for gap in layout.gaps:
        ids = streams[gap.parent].ids[starts[gap.parent] : gap.parent_len]
        starts[gap.parent] = gap.parent_len
        read.append((tokenizer.decode_bytes(ids) + gap.prefix).decode())
    read.append(tokenizer.decode(layout.after.ids[starts["after"] :]))
    assert read == segments
    for gap in layout.gaps:
        gap.prefix.decode()
        assert not gap.prefix or any(tokenizer.token_bytes(i) == gap.prefix for i in range(tokenizer.vocab_size))


@settings(deadline=None)
@given(SEGMENTS)
def test_no_two_tokens_share_a_position_and_gaps_have_room(tokenizer: Tokenizer, segments: list[str]) -> None:
    layout = laid_out(tokenizer, *segments)
    positions = [*layout.before.positions, *layout.after.positions]
    assert positions == sorted(set(positions))
    first, *further = layout.gaps
    assert layout.after.positions[0] - first.position == RESERVE
    for gap in further:
        assert not set(range(gap.position, gap.position + HOLE)) & set(positions)
        assert layout.after.positions[gap.parent_len - 1] < gap.position
