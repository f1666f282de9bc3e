import asyncio

import pytest
from lsprotocol import types

from lacuna_lsp.edit.filling import scope, stubs
from lacuna_model.syntax import language_for

from .editor import Editor, until
from .service import Daemon


def places(*ranges: tuple[int, int, int, int]) -> list[dict[str, object]]:
    return [{"start": {"line": a, "character": b}, "end": {"line": c, "character": d}} for a, b, c, d in ranges]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_all_markers_are_filled_in_one_request(editor: Editor, daemon: Daemon, encoding: str) -> None:
    daemon.plan(fills=[["1", "x + 1\n\ty"]])
    await editor.initialize(encoding=encoding)
    editor.open("a = '😀' + <<fill>>\r\ndef f(x):\r\n\treturn <<fill>>  # ä\r\n")
    answer = await editor.do("fillRegions", select="markers")
    assert answer == {"status": "applied", "edits": 2, "left": 0}
    assert editor.edited() == "a = '😀' + 1\r\ndef f(x):\r\n\treturn x + 1\r\n\ty  # ä\r\n"
    assert editor.applied[0].label == "Fill 2 places"
    (request,) = daemon.requests
    assert len(request["regions"]) == 2


async def test_a_request_that_the_client_cancels_edits_nothing(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(steps=500, pause=0.02)
    await editor.begin("a = <<fill>>\n")
    where = {"textDocument": {"uri": editor.uri}, "select": "markers"}
    params = types.ExecuteCommandParams("lacuna.fillRegions", [where])
    code = await editor.cancelled(types.WORKSPACE_EXECUTE_COMMAND, params, lambda: daemon.requests)
    assert code == types.LSPErrorCodes.RequestCancelled
    await until(lambda: daemon.log[-1]["event"] == "stopped")
    assert editor.applied == []


@pytest.mark.parametrize(("name", "language"), [("a.py", "mypython"), ("new", "python.django"), ("new", "python3")])
async def test_empty_bodies_are_found_whatever_an_editor_calls_the_language(
    editor: Editor, name: str, language: str
) -> None:
    await editor.initialize()
    editor.open("def f():\n    pass\n", name, language)
    await editor.do("fillRegions", select="bodies")
    assert editor.edited() == "def f():\n    filled\n"


async def test_places_without_a_valid_fill_are_retried_in_smaller_requests(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(status="no_valid_fill")
    await editor.begin("a = <<fill>>\nb = <<fill>>\nc = <<fill>>\n")
    answer = await editor.do("fillRegions", select="markers")
    assert answer == {"status": "nothing", "left": 3}
    assert [len(request["regions"]) for request in daemon.requests] == [3, 1, 2, 1, 1]


async def test_refused_edits_for_an_older_version_are_reported_in_one_line(editor: Editor) -> None:
    await editor.initialize()
    editor.refusing = "the version is stale"
    editor.open("a = <<fill>>\n")
    answer = await editor.do("fillRegions", select="markers")
    assert answer["status"] == "stale"
    assert answer["texts"] == {editor.uri: ["filled"]}
    assert editor.messages == ["Lacuna: Fill 1 place: nothing was edited, the version is stale"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"select": "markers"}, "there is nothing to fill"),
        ({"ranges": places((0, 0, 99, 0))}, "line 100 is outside /work/code.py"),
        ({"select": "some"}, "bad argument"),
        ({"colour": 1}, "bad argument: Object contains unknown field `colour`"),
    ],
)
async def test_a_bad_request_is_refused_with_a_reason(
    editor: Editor, daemon: Daemon, arguments: dict[str, object], said: str
) -> None:
    await editor.begin("a = 1\n")
    with pytest.raises(Exception, match=said):
        await editor.do("fillRegions", **arguments)
    assert daemon.requests == []


async def test_a_suggestion_in_the_same_document_does_not_end_a_fill(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(steps=20, pause=0.02)
    await editor.begin("value = ¦\nother = <<fill>>\n")
    filling = asyncio.ensure_future(editor.do("fillRegions", select="markers"))
    await until(lambda: daemon.requests)
    assert await editor.suggest() == ["filled"]
    assert (await filling)["status"] == "applied"
    assert editor.edited() == "value = \nother = filled\n"


async def test_a_client_without_versioned_edits_gets_plain_edits(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize(without="workspace.workspace_edit")
    editor.open("a = <<fill>>\n")
    await editor.do("fillRegions", select="markers")
    edit = editor.applied[0].edit
    assert edit.document_changes is None
    assert edit.changes is not None
    assert [change.new_text for change in edit.changes[editor.uri]] == ["filled"]


def bodies(language: str, text: bytes) -> list[bytes]:
    known = language_for(name=language)
    assert known is not None
    return [text[region.start : region.end] for region in stubs(text, known, 0, len(text))]


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("python", b"def f():\n    ...\ndef g():\n    'Doc.'\n    pass\ndef h():\n    return 1\n", [b"...", b"pass"]),
        ("python", b"def f():\n    # TODO: x\n    raise NotImplementedError('x')\n",
         [b"raise NotImplementedError('x')"]),
        ("typescript", b"class A { f() { // TODO\n } g() { throw new Error('not implemented'); } h() {} }",
         [b"\n ", b"throw new Error('not implemented');"]),
        ("rust", b"fn f() -> i32 { todo!() }\nfn g() { unimplemented!(\"x\") }", [b"todo!()", b'unimplemented!("x")']),
        ("go", b"package m\nfunc f() { panic(\"TODO\") }\nfunc g() {}\n", [b'panic("TODO")']),
        ("java", b"class A { int f() { // TODO write\n } void g() { run(); } }", [b"\n "]),
        ("csharp", b"class A { int F() { throw new NotImplementedException(); } }",
         [b"throw new NotImplementedException();"]),
    ],
)  # fmt: skip
def test_placeholder_bodies_are_found(language: str, text: bytes, found: list[bytes]) -> None:
    assert bodies(language, text) == found


def test_the_scope_is_the_class_or_function_around_an_offset() -> None:
    text = b"class A:\n    def f(self):\n        pass\n\ndef g():\n    pass\nx = 1\n"
    known = language_for(name="python")
    assert known is not None
    assert scope(text, known, text.index(b"self"))[0] == "A"
    assert scope(text, known, text.rindex(b"pass"))[0] == "g"
    assert scope(text, known, len(text) - 2) == ("", 0, len(text))
