"""The cache is exact: after any edits, what is read over it equals what is read over a context encoded anew."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lacuna_model import engine, sessions
from lacuna_model.constraint import Unconstrained
from lacuna_model.context import Layout, lay_out
from lacuna_model.denoise import denoise
from lacuna_model.kv_cache import ContextCache, UpdateCounts
from lacuna_model.loader import LoadedModel
from lacuna_model.params import DecodeOptions
from lacuna_model.sessions import Session
from lacuna_model.window import WindowOptions

from . import tiny

BEFORE, AFTER = tiny.CODE.split("    return value\n")
TYPED = "    # sum up\n    while total in name():\n        value = [x + y for x in range(9)]\n\n" * 3


@pytest.fixture(autouse=True, scope="module")
def small_reserve() -> object:
    """So little room between the cursor and the text after it that typing uses it up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "RESERVE", 40)
        patch.setattr(sessions, "MAX_RESERVE", 80)
        yield patch


class Editor:
    """A document under edit with the session that an engine would have of it."""

    def __init__(self, model: LoadedModel, *segments: str, window: WindowOptions | None = None) -> None:
        self.segments = list(segments)
        self.snippets = ""
        self.cache = ContextCache(model.base, dtype=model.cache_dtype)
        self.session = Session(self.cache, window or WindowOptions())
        self._model = model
        self.layout, self.counts = self.update()

    def update(self) -> tuple[Layout, UpdateCounts]:
        """Bring the session up to date, as the engine does for every request."""
        tokenizer, window = self._model.tokenizer, self.session.window
        segments = list(self.segments)
        segments[0] = window.before(segments[0].encode(), tokenizer).decode()
        segments[-1] = window.after(segments[-1].encode(), tokenizer).decode()
        self.layout = lay_out(
            segments,
            tokenizer,
            reserve=lambda num_before: self.session.reserve(num_before, needed=20),
            hole=20,
            snippets=self.snippets,
        )
        self.counts = self.cache.update(self.layout)
        return self.layout, self.counts

    def type(self, text: str) -> None:
        self.segments[0] += text
        self.update()

    def replace(self, *segments: str) -> None:
        self.segments = list(segments)
        self.update()

    def assert_exact(self) -> None:
        """Compare canvas and guided logits over the session with those over the same context encoded anew."""
        fresh = ContextCache(self._model.base)
        assert fresh.update(self.layout).encoded == self.cache.length == fresh.length
        for lived, anew in zip(
            read(self._model, self.cache, self.layout), read(self._model, fresh, self.layout), strict=True
        ):
            torch.testing.assert_close(lived, anew, atol=1e-4, rtol=1e-4)


def read(model: LoadedModel, cache: ContextCache, layout: Layout) -> list[Tensor]:
    """Logits of every canvas, drafted and by the base, and what the two say together."""
    reader = tiny.reader(model, cache, layout, guidance=0.5)
    canvases = tiny.canvases(layout)
    for canvas in canvases:
        canvas.open_block()
    with torch.inference_mode():
        drafted = reader.draft(canvases)
        guided = reader.verify(canvases, [[5, 6, 7, 8, 9, 10]] * len(canvases))
    seen = [marginals for marginals in reader.read(canvases) if marginals is not None]
    mixed = [torch.from_numpy(part) for marginals in seen for part in (marginals.logp, marginals.entropy)]
    return [*drafted, *guided, *mixed]


def context_rows(cache: ContextCache) -> Tensor:
    """Keys and values of all context tokens."""
    return torch.stack((cache.arena.keys, cache.arena.values))[..., : cache.length, :].clone()


def stream_rows(cache: ContextCache, name: str) -> Tensor:
    cached = cache.stream(name)
    return context_rows(cache)[..., cached.offset : cached.offset + len(cached.stream), :]


def common(old: Sequence[int], new: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def test_the_context_is_what_an_ordinary_causal_pass_gives(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    before = editor.layout.before
    alone = ContextCache(model.base)
    alone.update(Layout(before=before, after=type(before)(), gaps=()))
    torch.testing.assert_close(stream_rows(editor.cache, "before"), context_rows(alone), atol=1e-5, rtol=1e-5)


def test_what_was_encoded_is_kept_where_nobody_goes_on(model: LoadedModel) -> None:
    cache = ContextCache(model.base)
    layout = lay_out((BEFORE, AFTER), model.tokenizer, reserve=lambda _: 64, hole=0)
    other = lay_out((BEFORE + TYPED, AFTER), model.tokenizer, reserve=lambda _: 64, hole=0)
    encoded = 0
    while not cache.length or cache.length < len(layout.after) + len(layout.before):
        pieces = cache.updating(layout)
        next(pieces, None)
        pieces.close()
        assert cache.length > encoded
        encoded = cache.length
    cache.update(other)
    fresh = ContextCache(model.base)
    fresh.update(other)
    torch.testing.assert_close(context_rows(cache), context_rows(fresh), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 57, 128, 200])
def test_typing(model: LoadedModel, count: int) -> None:
    editor = Editor(model, BEFORE, AFTER)
    editor.type(TYPED[:count])
    editor.assert_exact()


def test_typing_character_by_character(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    encoded = 0
    for i, character in enumerate(TYPED[:200]):
        old = editor.layout
        editor.type(character)
        new = editor.layout
        assert editor.counts.encoded == len(new.before) - common(old.before.ids, new.before.ids)
        encoded += editor.counts.encoded
        if i % 20 == 0 or old.after.positions != new.after.positions:
            editor.assert_exact()
    assert encoded < 250


def test_typing_encodes_only_the_tokens_that_changed(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    editor.snippets = "# other.py\nx = 1\n"
    editor.update()
    rows: list[int] = []
    embed = model.base.embed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.base, "embed", lambda ids: rows.append(ids.shape[1]) or embed(ids))
        after = stream_rows(editor.cache, "after")
        for typed in ("v", "alue", " = ", "x"):
            old = editor.layout.before
            rows.clear()
            editor.type(typed)
            changed = len(editor.layout.before) - common(old.ids, editor.layout.before.ids)
            assert sum(rows) == editor.counts.encoded == changed <= len(typed) + 1
    assert torch.equal(stream_rows(editor.cache, "after"), after)
    assert editor.counts.total == editor.cache.length


def test_the_same_request_again_encodes_nothing(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    editor.assert_exact()
    editor.update()
    assert editor.counts.encoded == 0
    editor.assert_exact()


@pytest.mark.parametrize("count", [1, 5, 60, len(BEFORE)])
def test_deleting(model: LoadedModel, count: int) -> None:
    editor = Editor(model, BEFORE, AFTER)
    editor.assert_exact()
    editor.replace(BEFORE[:-count], AFTER)
    assert editor.counts.encoded <= 1
    editor.assert_exact()


@pytest.mark.parametrize("target", [0, 30, len(BEFORE) - 1, len(BEFORE) + 1, len(tiny.CODE) - 40, len(tiny.CODE)])
def test_a_cursor_jump(model: LoadedModel, target: int) -> None:
    editor = Editor(model, BEFORE, AFTER)
    text = BEFORE + AFTER
    editor.replace(text[:target], text[target:])
    editor.assert_exact()
    editor.replace(BEFORE, AFTER)
    editor.assert_exact()


EDITS_AFTER = {
    "at its start": lambda after: "x = 3\n" + after,
    "within": lambda after: after.replace("Account", "Customer"),
    "at its end": lambda after: after + "        return value\n",
    "cut": lambda after: after[:50],
    "gone": lambda after: "",
}


@pytest.mark.parametrize("edit", EDITS_AFTER)
def test_an_edit_after_the_gap(model: LoadedModel, edit: str) -> None:
    editor = Editor(model, BEFORE, AFTER)
    old, rows = editor.layout.after, stream_rows(editor.cache, "after")
    editor.replace(BEFORE, EDITS_AFTER[edit](AFTER))
    kept = common(old.ids, editor.layout.after.ids)
    assert editor.counts.encoded == len(editor.layout.after) - kept
    assert torch.equal(stream_rows(editor.cache, "after")[..., :kept, :], rows[..., :kept, :])
    editor.assert_exact()


def test_the_reserve_used_up(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    anchors = [editor.layout.after.positions[0]]
    for typed in TYPED.splitlines(keepends=True):
        editor.type(typed)
        # The keys of the text after the gap are turned, never encoded again.
        assert editor.counts.encoded <= len(typed) + 1
        assert editor.layout.after.positions[0] - len(editor.layout.before) >= 20
        editor.assert_exact()
        anchors.append(editor.layout.after.positions[0])
    assert len(set(anchors)) >= 4
    # Deleting all of it leaves more room than is good: the text after the gap moves back.
    editor.replace(BEFORE[:40], AFTER)
    assert editor.layout.after.positions[0] < anchors[-1]
    assert editor.counts.encoded <= 1
    editor.assert_exact()


def test_turning_keys_a_hundred_times_stays_exact(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    for _ in range(50):
        editor.type(TYPED[:180])
        editor.replace(BEFORE, AFTER)
    editor.assert_exact()


def test_snippets_come_change_and_go(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    for snippets in ("# a.py\nx = 1\n", "# a.py\nx = 1\ny = 2\n", "# b.py\nimport a\n", "", "# a.py\nx = 1\n"):
        editor.snippets = snippets
        editor.type("x")
        assert editor.counts.encoded <= len(editor.layout.before)
        editor.assert_exact()


def test_further_gaps_come_and_go(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    first, second, third = AFTER[:40], AFTER[40:110], AFTER[110:]
    for segments in ((first, second + third), (first, second, third), ("", "", AFTER), (first + second, third)):
        editor.replace(BEFORE, *segments)
        editor.assert_exact()
        editor.type("x = 1\n")
        assert editor.counts.encoded <= 7
        editor.assert_exact()
        editor.segments[0] = BEFORE


def test_a_window_that_moves(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER, window=WindowOptions(before=60, after=40))
    lengths = []
    for typed in TYPED.splitlines(keepends=True):
        editor.type(typed)
        editor.assert_exact()
        lengths.append(len(editor.layout.before))
    assert max(lengths) <= 81
    assert sorted(lengths) != lengths


def test_a_long_context_outgrows_the_first_arena(model: LoadedModel) -> None:
    editor = Editor(model, BEFORE, AFTER)
    capacity = editor.cache.arena.keys.shape[2]
    editor.type(TYPED * 4)
    editor.assert_exact()
    assert editor.cache.arena.keys.shape[2] > capacity
    assert editor.cache.arena.num_bytes == 2 * editor.cache.arena.keys.numel() * 4


PIECES = st.sampled_from(["x", "\n", "    ", "def f(x):\n", "value", " = total\n", "\U0001f600", "return x + 1\n" * 12])
EDITS = st.one_of(
    st.tuples(st.just("type"), PIECES),
    st.tuples(st.just("delete"), st.integers(1, 60)),
    st.tuples(st.just("jump"), st.integers(0, 600)),
    st.tuples(st.just("edit after"), PIECES),
    st.tuples(st.just("split after"), st.integers(1, 300)),
    st.tuples(st.just("snippets"), st.sampled_from(["", "# a.py\nx = 1\n", "# a.py\nx = 1\ny = 2\n"])),
)


def apply(editor: Editor, kind: str, what: str | int) -> None:
    before, *middle, after = editor.segments
    if isinstance(what, int):
        whole = before + "".join(middle) + after
        segments = {
            "delete": [before[:-what], *middle, after],
            "jump": [whole[:what], whole[what:]],
            "split after": [before, after[:what], after[what:]],
        }[kind]
        editor.replace(*segments)
    elif kind == "type":
        editor.type(what)
    elif kind == "edit after":
        editor.replace(before, *middle, after[:20] + what + after[25:])
    else:
        editor.snippets = what
        editor.update()


@settings(deadline=None, max_examples=40)
@given(st.lists(EDITS, min_size=1, max_size=12))
def test_any_sequence_of_edits(model: LoadedModel, edits: list[tuple[str, str | int]]) -> None:
    editor = Editor(model, BEFORE, AFTER, window=WindowOptions(before=150, after=80))
    for kind, what in edits:
        old = {name: editor.cache.stream(name).stream.ids for name in ("before", "after")}
        apply(editor, kind, what)
        new = {name: getattr(editor.layout, name).ids for name in old}
        assert editor.counts.encoded >= sum(len(new[name]) - common(old[name], new[name]) for name in old)
        editor.assert_exact()


@pytest.mark.parametrize("guidance", [0.0, 0.5])
def test_a_fill_leaves_the_context_as_it_was_and_is_the_same_on_a_fresh_one(
    model: LoadedModel, guidance: float
) -> None:
    def filled(cache: ContextCache, layout: Layout) -> list[list[int]]:
        canvases = tiny.canvases(layout, block_size=4, budget=14, min_tokens=14)
        loop = denoise(
            tiny.reader(model, cache, layout, guidance),
            canvases,
            Unconstrained(model.tokenizer),
            model.tokenizer,
            DecodeOptions(steps=2),
            cancelled=engine.never,
            deadline=None,
        )
        for _ in loop:
            pass
        return [canvas.tokens() for canvas in canvases]

    editor = Editor(model, BEFORE, AFTER[:40], AFTER[40:])
    editor.type(TYPED[:30])
    rows = context_rows(editor.cache)
    fills = filled(editor.cache, editor.layout)
    assert [len(fill) for fill in fills] == [14, 14]
    assert torch.equal(context_rows(editor.cache), rows)
    fresh = ContextCache(model.base)
    fresh.update(editor.layout)
    assert filled(fresh, editor.layout) == fills
    editor.type("\n")
    editor.assert_exact()


def test_a_context_token_never_sees_another_stream(model: LoadedModel) -> None:
    def rows(*segments: str) -> Tensor:
        return stream_rows(Editor(model, *segments).session.cache, "before")

    assert torch.equal(rows(BEFORE, AFTER), rows(BEFORE, "other"))
