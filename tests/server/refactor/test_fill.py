import asyncio

import pytest

from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region, Status
from lacuna_model.core.regions import MAX_SPAN_BYTES
from lacuna_server.refactor.fill import FileFill, fill_concurrently, fill_files
from lacuna_server.refactor.journal import sha256
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import FileEdits
from lacuna_server.refactor.rewriting.refactoring import by_instruction, by_structure, places
from lacuna_server.wire.protocol import ServiceError

from .bench import Bench, Scripted

ADD = by_structure("get($$$ARGS)", "get($$$ARGS, timeout=<<fill:line>>)")


def calls(count: int, between: str = "") -> str:
    return "".join(f"x{index} = get({index})\n{between}" for index in range(count))


def file_fill(source: Source) -> FileFill:
    ((_, rewrites),) = places(ADD, [source])[0]
    return FileFill(source, rewrites)


def run(fill: FileFill, answer: Scripted) -> FileEdits:
    fill_files([fill], answer, lambda done: None)
    return fill.edits()


def test_places_are_filled_in_batches_over_a_whole_file(bench: Bench) -> None:
    source, answer = bench.source(calls(20)), Scripted()
    edits = run(file_fill(source), answer)
    assert [len(request.regions) for request in answer.requests] == [8, 8, 4]
    second = answer.requests[1]
    assert second.text.startswith("x0 = get(0, timeout=x)\n")
    assert second.text.endswith("x18 = get(18)\nx19 = get(19)\n")
    assert second.text.count("timeout=)") == 8
    for region in second.regions:
        assert second.text.encode()[: region.start].endswith(b"timeout=")
        assert region.single_line
    assert (second.path, second.language) == ("code.py", "python")
    assert edits.rewritten(source.data).decode() == calls(20).replace(")", ", timeout=x)")
    assert edits.sha256 == sha256(source.data)


@pytest.mark.parametrize(
    ("template", "single"),
    [
        ("get($A, timeout=<<fill>>)", True),
        ("get($A, timeout=<<fill:tokens=5>>)", True),
        ("get($A, timeout=<<fill:lines=3>>)", False),
        ("$A + <<fill>>", False),  # nothing follows on the line
    ],
)
def test_a_hole_that_is_followed_by_text_on_its_line_gets_one_line(bench: Bench, template: str, single: bool) -> None:
    answer = Scripted()
    source = bench.source("x = get(1)\n")
    ((_, rewrites),) = places(by_structure("get($A)", template), [source])[0]
    run(FileFill(source, rewrites), answer)
    assert [region.single_line for region in answer.requests[0].regions] == [single]


def test_a_request_has_only_places_that_fit_into_one_window(bench: Bench) -> None:
    answer = Scripted()
    run(file_fill(bench.source(calls(4, "#" * (MAX_SPAN_BYTES // 2) + "\n"))), answer)
    assert [len(request.regions) for request in answer.requests] == [2, 2]


@pytest.mark.parametrize("bad", [{0}, {3}, {7}, {2, 5}, {0, 1, 2, 3, 4, 5, 6, 7}])
def test_a_place_without_a_valid_fill_stays_as_it_was(bench: Bench, bad: set[int]) -> None:
    source = bench.source(calls(8))
    answer = Scripted()

    def fill(region: Region) -> str | None:
        line = answer.requests[-1].text.encode().count(b"\n", 0, region.start)
        return None if line in bad else "1"

    answer.fill = fill
    edits = run(file_fill(source), answer)
    assert {index for index, edit in enumerate(edits.edits) if edit.status == "failed"} == bad
    assert {edit.message for edit in edits.edits if edit.status == "failed"} == {"nothing fits"}
    expected = [f"x{i} = get({i})" if i in bad else f"x{i} = get({i}, timeout=1)" for i in range(8)]
    assert edits.rewritten(source.data).decode().splitlines() == expected


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("get($$$ARGS, a=<<fill>>)", "get(1)\nget(2, a=1)\n"),
        ("get($$$ARGS, <<fill>>", "get(1)\n"),
        ("get($$$ARGS, b=1", "get(1)\n"),
        ("def", "get(1)\n"),
    ],
    ids=["compiles-not", "parses-not", "without-hole", "keyword"],
)
def test_an_edit_that_would_break_the_file_is_left_out(bench: Bench, template: str, text: str) -> None:
    source = bench.source(text)
    files, left_out = bench.edits(by_structure("get($$$ARGS)", template), [source])
    assert left_out or files[0].edits[-1].status == "failed"
    compile(files[0].rewritten(source.data) if files else text, "code.py", "exec")


def test_a_client_can_fill_several_files_at_the_same_time(bench: Bench) -> None:
    answer, running = Scripted(), 0
    most = 0

    async def ask(request: InfillRequest) -> InfillResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return answer(request)

    fills = [file_fill(bench.source(calls(count))) for count in (9, 17, 2, 5, 1)]
    seen: list[int] = []
    asyncio.run(fill_concurrently(fills, ask, seen.append, at_once=3))
    assert most == 3
    assert sum(seen) == 34
    for fill in fills:
        assert all(edit.status == "ready" for edit in fill.edits().edits)


def instructed(bench: Bench, text: str, *answers: InfillResult) -> FileEdits:
    """The edits of all calls of f by an instruction, with these answers one after another."""
    source, left = bench.source(text), list(answers)
    ((_, rewrites),) = places(by_instruction(by_structure("f($A)", "<<fill>>"), "add an argument"), [source])[0]
    fill = FileFill(source, rewrites)
    fill_files([fill], lambda request: left.pop(0), lambda done: None)
    return fill.edits()


def answer(*fills: str, status: Status = "ok", message: str = "", warnings: tuple[str, ...] = ()) -> InfillResult:
    return InfillResult(status, fills, FillStats(), message, warnings=warnings)


def test_a_refused_place_of_several_is_a_failure(bench: Bench) -> None:
    first = answer("f(1, 3)\n", "f(2)\n", message="1 of 2 regions stay as they are: a name is gone")
    second = answer("f(2)\n", status="no_valid_fill", message="a name is gone")
    edits = instructed(bench, "f(1)\nf(2)\n", first, second)
    assert [(edit.status, edit.message) for edit in edits.edits] == [("ready", ""), ("failed", "a name is gone")]


def test_a_second_answer_has_its_own_warnings(bench: Bench) -> None:
    first = answer("f(1, 2)\n", "f(2\n", warnings=("careful", ""))
    edits = instructed(bench, "f(1)\nf(2)\n", first, answer("f(1, 2)\n"), answer("f(2, 2)\n"))
    assert [edit.status for edit in edits.edits] == ["ready", "ready"]


@pytest.mark.parametrize(
    ("name", "text", "new"),
    [
        ("code.js", "if (f(1)) {\n  a();\n}\n", "if (f(1, 2)) {\n"),
        ("code.py", "print(f(1),\n      g(2))\n", "print(f(1, 2),\n"),
    ],
)
def test_lines_that_open_a_bracket_are_rewritten_by_an_instruction(
    bench: Bench, name: str, text: str, new: str
) -> None:
    edit = by_instruction(by_structure("f($A)", "<<fill>>"), "add an argument")
    ((_, rewrites),) = places(edit, [bench.source(text, name)])[0]
    fill = FileFill(bench.source(text, name), rewrites)
    fill_files([fill], lambda request: answer(new), lambda done: None)
    assert fill.edits().rewritten(text.encode()).decode() == text.replace("f(1)", "f(1, 2)")


@pytest.mark.parametrize("error", [RequestError("it is too long"), ServiceError("bad_request", "it is too long")])
def test_a_place_whose_request_is_refused_is_a_failure_and_the_others_are_filled(
    bench: Bench, error: LacunaError
) -> None:
    scripted = Scripted()

    def fill(request: InfillRequest) -> InfillResult:
        if any(request.text.count("\n", 0, region.start) == 1 for region in request.regions):
            raise error
        return scripted(request)

    async def ask(request: InfillRequest) -> InfillResult:
        return fill(request)

    source = bench.source(calls(3))
    once, at_once = file_fill(source), file_fill(source)
    fill_files([once], fill, lambda done: None)
    asyncio.run(fill_concurrently([at_once], ask, lambda done: None))
    assert once.edits() == at_once.edits()
    found = [(edit.status, edit.message) for edit in once.edits().edits]
    assert found == [("ready", ""), ("failed", "it is too long"), ("ready", "")]


def test_a_service_that_is_gone_ends_a_refactor(bench: Bench) -> None:
    def fill(request: InfillRequest) -> InfillResult:
        raise ServiceError("worker_crashed", "it crashed")

    with pytest.raises(ServiceError, match="it crashed"):
        fill_files([file_fill(bench.source(calls(3)))], fill, lambda done: None)


def test_what_an_edit_leaves_alone_keeps_its_line_ends(bench: Bench) -> None:
    text = "def f():\r\n    return get(1,\n        2)\n"
    answer = Scripted(lambda region: "    return got(1,\n        2)\n")
    edit = by_instruction(by_structure("get($$$A)", "<<fill>>"), "rename")
    assert bench.apply(edit, text, answer=answer) == text.replace("get(", "got(")


@pytest.mark.parametrize("text", ["def f(x):\n    # twice\n    return 2 * x\n", "async def f(x):\n    return x\n"])
def test_an_instruction_rewrites_a_place_with_what_its_pattern_does_not_name(bench: Bench, text: str) -> None:
    edit = by_instruction(by_structure("def $F($$$A): $$$B", "<<fill>>"), "add a docstring")
    assert bench.apply(edit, text, answer=Scripted(lambda region: text + "\n")) == text + "\n"


@pytest.mark.parametrize(
    ("fill", "kept"),
    [
        ("3", True),
        ("f(a)[0]", True),
        ("{'a': (1, 2)}", True),
        ("')'", True),
        ("\n# why\n3", True),
        ("3)  # the rest", False),
        ("3), get(4", False),
        ("3) + (4", False),
        ("", False),
    ],
)
def test_a_fill_must_stay_inside_its_hole(bench: Bench, fill: str, kept: bool) -> None:
    (edits,), _ = bench.edits(
        by_structure("get($$$ARGS)", "get($$$ARGS, timeout=<<fill>>)"),
        [bench.source("get(1)\n")],
        Scripted(lambda region: fill),
    )
    assert (edits.edits[0].status == "ready") is kept


@pytest.mark.parametrize(
    ("name", "template"),
    [("a.py", "f('<<fill>>.', $A)"), ("a.js", "f('<<fill>>.', $A)"), ("a.go", "f(`<<fill>>.`, $A)")],
)
def test_a_hole_may_be_part_of_a_string_or_a_comment(bench: Bench, name: str, template: str) -> None:
    before = "package a\n\nfunc g() {\n\tget(1)\n}\n" if name == "a.go" else "get(1)\n"
    made = bench.apply(by_structure("get($A)", template), before, name, Scripted(lambda region: "a b"))
    assert "a b." in made
    comment = "get($A)  # <<fill>> end" if name == "a.py" else "get($A) // <<fill>> end"
    assert "a b end" in bench.apply(by_structure("get($A)", comment), before, name, Scripted(lambda region: "a b"))
