from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lacuna_model import engine as engine_module
from lacuna_model import group_fill
from lacuna_model.core.context import Layout
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import (
    DecodeOptions,
    FillGaps,
    InfillRequest,
    InfillResult,
    Region,
    Snapshot,
    Task,
)
from lacuna_model.core.regions import MAX_SPAN_BYTES
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.passes import SharedPasses, Wanted

from . import tiny
from .scripted import Scripted, Strict, collected

MARK = "<<fill>>"
FILL, OPEN = FillGaps(), FillGaps(open=True)


def request(
    text: str, *, task: Task = FILL, options: DecodeOptions | None = None, path: str = "", **region: object
) -> InfillRequest:
    """A request with one region for every marker in ``text``; the marker is what is replaced."""
    data, regions, at = text.encode(), [], 0
    region = {"max_tokens": 12} | region
    while (start := data.find(MARK.encode(), at)) >= 0:
        at = start + len(MARK)
        regions.append(Region(start, at, **region))
    return InfillRequest(text, tuple(regions), task, path=path, options=options or DecodeOptions(syntax=False))


def run(engine: Engine, asked: InfillRequest) -> tuple[list[Snapshot], InfillResult]:
    """The snapshots of all denoising steps, and the result."""
    snapshots, result = collected(engine.stream(asked))
    return [snapshot for snapshot in snapshots if snapshot.step], result  # step 0 only encodes the context


def shown(snapshot: Snapshot) -> tuple[str, ...]:
    """A snapshot's fills without replacement characters: the tiny model also writes invalid UTF-8."""
    return tuple(fill.replace("\ufffd", "") for fill in snapshot.fills)


@pytest.fixture
def engine(either_model: LoadedFim) -> Engine:
    return Engine(either_model)


class ScriptedModel(Scripted):
    """Replaces the engine's transformer. It writes the healed text of each gap, then the gap's text of the script."""

    script: tuple[str, ...] = ()

    def __init__(self, _model: object, _cache: object, layout: Layout, *_: object) -> None:
        texts = (gap.prefix.decode() + text for gap, text in zip(layout.gaps, self.script, strict=True))
        super().__init__(self.tokenizer, *texts)


@pytest.fixture
def script(either_model: LoadedFim, monkeypatch: pytest.MonkeyPatch) -> type[ScriptedModel]:
    monkeypatch.setattr(ScriptedModel, "tokenizer", either_model.tokenizer, raising=False)
    monkeypatch.setattr(group_fill, "reader", ScriptedModel)
    return ScriptedModel


ONE = "def area(radius):\n    return <<fill>>\n\n\nprint(area(2))\n"
THREE = "import <<fill>>\n\n\ndef total(values):\n    x = <<fill>>\n    return x<<fill>>\n"


@pytest.mark.parametrize("given", [{"schedule": "single"}, {"steps": 4}, {"entropy_bound": 1.0}, {"confidence": 0.5}])
def test_options_of_diffusion_checkpoints_are_refused_in_one_line(engine: Engine, given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(RequestError, match=rf"^tiny is no diffusion checkpoint, .* these options: {name}$"):
        engine.fill(request(ONE, options=DecodeOptions(**given)))


def test_every_gap_gets_a_fill_and_stats_add_up(engine: Engine, either_model: LoadedFim) -> None:
    snapshots, result = run(engine, request(THREE))
    stats = result.stats
    assert (result.status, len(result.fills)) == ("ok", 3)
    assert MARK not in "".join(result.fills)
    assert shown(snapshots[-1]) == result.fills
    assert stats.nfe > 0
    assert [snapshot.step for snapshot in snapshots] == list(range(1, stats.steps + 1))
    assert stats.tokens == sum(len(either_model.tokenizer.encode(fill)) for fill in result.fills)
    assert stats.context_tokens > 0
    assert stats.cached_tokens == 0
    assert 0 < stats.encode_ms <= stats.ms
    assert not stats.constrained
    again = engine.fill(request(THREE))
    assert 0 < again.stats.cached_tokens < again.stats.context_tokens == stats.context_tokens
    assert again.fills == result.fills


GO = "package p\n\nfunc f() error {\n\terr := g()\n\t<<fill>>\n\nfunc h() {\n}\n"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("if err != nil {", "if err != nil {"),
        ("if err != nil {\n\t\treturn err\n\t}", "if err != nil {\n\t\treturn err\n\t}"),
        ("return err\n}\n\nfunc i() {\n}", "return err\n}"),
        ("h(err))", "h(err)"),
        (")", ""),
    ],
    ids=["opens-a-block", "closes-its-own", "ends-with-its-function", "closes-too-much", "nothing"],
)
def test_open_delivery_holds_what_the_model_wrote_up_to_what_cannot_be_read(
    engine: Engine, script: type[ScriptedModel], written: str, shown: str
) -> None:
    script.script = (written,)
    result = engine.fill(request(GO, task=OPEN, options=DecodeOptions(), path="a.go", max_tokens=60))
    assert (result.status, result.fills) == ("ok", (shown,))
    assert result.stats.constrained


def test_a_fill_that_runs_into_its_budget_ends_with_a_whole_line(engine: Engine, script: type[ScriptedModel]) -> None:
    script.script = ("x = 1\n    y = 2\n    z = f(1, 2, 3, 4, 5, 6, 7, 8, 9)\n",)
    text = "def f():\n    <<fill>>\n    return 1\n"
    for task in (OPEN, FILL):
        result = engine.fill(request(text, task=task, options=DecodeOptions(), path="a.py", max_tokens=20))
        assert result.fills[0] in ("x = 1", "x = 1\n    y = 2")


@pytest.mark.parametrize(
    ("text", "wanted", "fill"),
    [
        ("def f(x):\n    <<fill>>\n    return x\n", "x = 1\n    return x\n", "x = 1"),
        ("def f(x):\n<<fill>>    return x\n", "    x = 1\n    return x\n", "    x = 1\n"),
        ("print(<<fill>>)\n", "x)\n", "x"),
        ("def f(x):\n    <<fill>>\n", "x = 1\nprint(f)\n", "x = 1"),
        ("def f(x):\r\n<<fill>>    return x\r\n", "    x = 1", "    x = 1\r\n"),
        ("def f(x):\r\n<<fill>>    return x\r\n", "", ""),
    ],
    ids=["next-line", "whole-line", "closing-bracket", "leaves-block", "newline-of-the-file", "nothing"],
)
def test_a_fill_repeats_no_suffix_and_ends_its_lines(
    engine: Engine, script: type[ScriptedModel], text: str, wanted: str, fill: str
) -> None:
    script.script = (wanted,)
    result = engine.fill(request(text, max_tokens=60))
    assert result.fills == (fill,)


@pytest.mark.parametrize("line", [True, False], ids=["single line", "lines"])
@pytest.mark.parametrize(
    ("path", "text", "wanted", "fill"),
    [
        ("a.py", 'print("Hello, <<fill>>")\n', 'World!")\n', "World!"),
        ("a.py", 'name = "a"\nprint(f"Hello, {<<fill>>}!")\n', 'name}!")\n', "name"),
        ("a.py", 'name = "a"\nprint(f"Hello, {<<fill>>}!")\n', 'name}!")  # Output: Hello, a! b! c! d! e! f!', "name"),
        ("a.py", "total = sum(x for x in <<fill>>)\n", "range(1, 101))\n", "range(1, 101)"),
        ("a.js", "const a = f(<<fill>>);\n", "g());\n", "g()"),
        ("a.js", "const a = `${<<fill>>}!`;\n", "user.name}!`;\n", "user.name"),
        ("a.go", "package a\n\nfunc f() {\n\tprintln(<<fill>>)\n}\n", '"b", g())\n', '"b", g()'),
        ("a.rs", 'fn main() {\n    println!("{}", <<fill>>);\n}\n', "v[0]);\n}\n", "v[0]"),
        ("a.json", '{"name": "<<fill>>", "age": 3}\n', 'John", "year": 25}\n', "John"),
    ],
)
def test_a_fill_whose_last_token_goes_on_into_the_suffix_is_kept_whole(
    engine: Engine, script: type[ScriptedModel], path: str, text: str, wanted: str, fill: str, line: bool
) -> None:
    script.script = (wanted,)
    asked = request(text, path=path, options=DecodeOptions(), single_line=line, max_tokens=40)
    assert engine.fill(asked).fills == (fill,)


@pytest.mark.parametrize("before", ["", "x = va", "x = \U0001f600", "s = 'caf\u00e9", "a\r\n", "    ", "x = '\u6771"])
def test_the_text_before_a_gap_is_no_part_of_its_fill(engine: Engine, before: str) -> None:
    asked = request(f"{before}<<fill>>\n", min_tokens=6)
    snapshots, result = run(engine, asked)
    # The model first writes the healed text again; no fill that is shown contains it.
    assert len(snapshots[-1].slots[0]) >= 6
    assert shown(snapshots[-1]) == result.fills


def test_far_regions_are_filled_one_after_another(engine: Engine) -> None:
    filler = "x = 1\n" * (MAX_SPAN_BYTES // 6 + 1)
    text = f"a = <<fill>>\n{filler}b = <<fill>>\n{filler}c = <<fill>>\n"
    asked = request(text, max_tokens=5)
    snapshots, result = run(engine, asked)
    assert result.status == "ok"
    assert all(len(snapshot.fills) == len(snapshot.slots) == 3 for snapshot in snapshots)
    seen = [shown(snapshot) for snapshot in snapshots]
    assert seen[0][1:] == ("", "")
    assert seen[-1] == result.fills
    assert any(fills[0] == result.fills[0] and fills[2] == "" for fills in seen)
    assert [len(lines) for lines in result.confidence] == [max(len(fill.splitlines()), 1) for fill in result.fills]


@pytest.mark.parametrize("last", [0, 1, 3])
def test_a_request_that_is_left_changes_no_later_one(engine: Engine, last: int) -> None:
    asked = request(THREE, options=DecodeOptions(syntax=False))
    steps = engine.stream(asked)
    for _ in range(last):
        next(steps)
    steps.close()
    _, result = run(engine, asked)
    assert result.status == "ok"
    assert result.fills == Engine(engine.model).fill(asked).fills


def clock(monkeypatch: pytest.MonkeyPatch, seconds_a_pass: float) -> None:
    """Let time pass only with forward passes."""
    now = 1000.0
    read = SharedPasses._pass

    def slow(shared: SharedPasses, together: Sequence[Wanted]) -> None:
        nonlocal now
        now += seconds_a_pass
        read(shared, together)

    monkeypatch.setattr(SharedPasses, "_pass", slow)
    monkeypatch.setattr(engine_module.time, "monotonic", lambda: now)


def test_a_long_context_is_encoded_in_steps_of_its_own(engine: Engine) -> None:
    asked = request(f"{tiny.CODE * 2}x = <<fill>>\n{tiny.CODE * 2}")
    stream = engine.stream(asked)
    first = next(stream)
    assert (first.step, first.fills, first.slots, first.nfe) == (0, ("",), ((),), 0)
    stream.close()
    again, result = run(engine, asked)
    assert [snapshot.step for snapshot in again] == list(range(1, result.stats.steps + 1))
    assert 0 < result.stats.cached_tokens < result.stats.context_tokens
    assert result.fills == Engine(engine.model).fill(asked).fills


def test_a_deadline_returns_the_complete_lines_written_so_far(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, seconds_a_pass=0.1)
    options = DecodeOptions(syntax=False, deadline_ms=450)
    asked = request(THREE, options=options, max_tokens=30, min_tokens=30)
    snapshots, result = run(engine, asked)
    assert (result.status, len(snapshots)) == ("deadline", 5)
    assert all(fill == "" or fill.endswith("\n") for fill in result.fills)


def test_a_deadline_leaves_later_groups_unchanged(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, seconds_a_pass=0.1)
    text = f"a = <<fill>>\n{'x = 1' * 1000}\nb = <<fill>>\n"
    options = DecodeOptions(syntax=False, deadline_ms=250)
    result = engine.fill(request(text, options=options, max_tokens=30, min_tokens=30))
    assert (result.status, result.fills[1]) == ("deadline", MARK)
    assert [len(lines) for lines in result.confidence] == [1, 0]
    assert result.stats.steps == 3


def test_a_seed_reproduces_a_sampled_fill(engine: Engine) -> None:
    def drawn(seed: int) -> tuple[str, ...]:
        options = DecodeOptions(syntax=False, temperature=1.5, seed=seed)
        return engine.fill(request(ONE, options=options, min_tokens=8)).fills

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(5)}) > 1


@pytest.mark.parametrize("size", [1, 2, 5, 16, 17, 40])
def test_fills_have_the_length_that_is_asked_for(engine: Engine, size: int) -> None:
    text = "x = \U0001f600<<fill>>"  # nothing is healed after an emoji: all tokens belong to the fill
    snapshots, _ = run(engine, request(text, max_tokens=size, min_tokens=size))
    assert len(snapshots[-1].slots[0]) == size
    assert len(run(engine, request(text, max_tokens=size))[0][-1].slots[0]) <= size


def test_more_tokens_than_the_model_has_positions_are_refused(engine: Engine) -> None:
    with pytest.raises(RequestError, match="max_tokens"):
        engine.fill(request(ONE, max_tokens=tiny.CONFIG.max_positions))


def test_without_a_valid_fill_the_text_stays_unchanged(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = Strict(engine.model.tokenizer, lambda *_: False)
    monkeypatch.setattr(group_fill, "constraint_for", lambda *args, **options: strict)
    result = engine.fill(request(THREE))
    assert (result.status, result.fills) == ("no_valid_fill", (MARK,) * 3)
    assert result.message == "line 1: nothing may stand here"


PIECES = st.sampled_from(
    ["x = 1", "\n", "\r\n", "\t", "    ", "\ufeff", "\U0001f468\u200d\U0001f4bb", "e\u0301", "caf\u00e9", "\u6771",
     "<|im_end|>"]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=8).map("".join)


@pytest.fixture(scope="module")
def shared(model: LoadedFim) -> Iterator[Engine]:
    return Engine(model)


@settings(deadline=None, max_examples=60)
@given(texts=st.lists(TEXTS, min_size=2, max_size=4))
def test_whatever_stands_around_them_all_gaps_get_a_fill(shared: Engine, texts: list[str]) -> None:
    regions, at = [], 0
    for text in texts[:-1]:
        at += len(text.encode())
        regions.append(Region(at, at, max_tokens=5))
    asked = InfillRequest("".join(texts), tuple(regions), options=DecodeOptions(syntax=False))
    result = shared.fill(asked)
    assert (result.status, len(result.fills)) == ("ok", len(regions))


@pytest.mark.parametrize("open_ended", [True, False])
def test_a_name_that_nobody_declares_makes_a_fill_less_likely(
    engine: Engine, script: type[ScriptedModel], tmp_path: Path, open_ended: bool
) -> None:
    text = "import math\n\n\ndef area(radius):\n    return <<fill>>\n"
    (tmp_path / "shapes.py").write_text("class Circle:\n    pass\n")
    engine.workspaces.read(str(tmp_path), 30.0)
    path = str(tmp_path / "a.py")
    asked = replace(request(text, path=path, task=FillGaps(open=open_ended)), workspace=str(tmp_path))
    sure = {}
    for name in ("radius", "Circle", "circel"):
        script.script = (name,)
        _, result = run(engine, asked)
        assert result.fills == (name,)
        sure[name] = result.confidence[0][0]
    engine.workspaces.close()
    assert sure["circel"] < 0.5 * min(sure["radius"], sure["Circle"])
