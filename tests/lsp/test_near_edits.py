"""Next edits that the model writes near a change, over the protocol."""

import asyncio

from lsprotocol import types
from tests.lsp.editor import Editor, launched, until
from tests.lsp.service import Daemon
from tests.lsp.test_inline_edit import accept, asked

ABOVE = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(14))
BELOW = "".join(f"other_{n} = show_{n}(part_{n})\n" for n in range(14))
TEXT = f"{ABOVE}def area(r):¦\n    return 3 * r\n{BELOW}"
WINDOW = "    return 3 * r\n" + "".join(BELOW.splitlines(keepends=True)[:11])


def widened(editor: Editor) -> None:
    editor.delete(len("):"))
    editor.type(", scale):")


async def opened(editor: Editor, daemon: Daemon, new: str = "3 * r * scale", **plan: object) -> None:
    daemon.plan(**{"fills": [WINDOW.replace("3 * r", new)], "log_prob": -0.1, **plan})
    await editor.begin(TEXT, automatic=False, readAhead=False)


async def test_what_the_model_is_sure_of_near_a_change_is_offered(editor: Editor, daemon: Daemon) -> None:
    await opened(editor, daemon)
    assert await asked(editor) == []
    assert daemon.rewrites == []
    widened(editor)
    (edit,) = await asked(editor)
    assert edit["text"] == "    return 3 * r * scale"
    assert edit["range"]["start"] == {"line": 15, "character": 0}
    (request,) = daemon.rewrites
    (region,) = request["regions"]
    start = len(editor.text[: editor.text.index("    return")].encode())
    assert (region["start"], region["end"]) == (start, start + len(WINDOW))
    change = request["task"]["changes"][-1]
    assert "def area(r):\n    return 3 * r\n" in change["old"]
    assert "def area(r, scale):\n" in change["new"]


async def test_what_the_model_is_not_sure_of_is_not_offered(editor: Editor, daemon: Daemon) -> None:
    await opened(editor, daemon, log_prob=-9.0)
    widened(editor)
    assert await asked(editor) == []
    assert len(daemon.rewrites) == 1


async def test_where_a_rule_knows_what_follows_the_model_is_not_asked(editor: Editor, daemon: Daemon) -> None:
    await editor.begin(
        f"import old_name¦\n{ABOVE}keep(old_name, 1)\n{BELOW}show(old_name)\n", automatic=False, readAhead=False
    )
    editor.delete(len("old_name"))
    editor.type("new_name")
    (edit,) = await asked(editor)
    assert edit["text"] == "keep(new_name, 1)"
    assert daemon.rewrites == []


async def test_an_edit_stops_the_model(editor: Editor, daemon: Daemon) -> None:
    await opened(editor, daemon, steps=400, pause=0.02)
    widened(editor)
    waiting = asyncio.ensure_future(asked(editor))
    await until(lambda: daemon.rewrites)
    editor.type("x")
    assert await waiting == []
    await until(lambda: "stopped" in daemon.events)


async def test_a_document_that_is_closed_while_the_model_writes_gets_no_offer(editor: Editor, daemon: Daemon) -> None:
    await opened(editor, daemon, steps=100, pause=0.02)
    widened(editor)
    waiting = asyncio.ensure_future(asked(editor))
    await until(lambda: daemon.rewrites)
    closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(editor.uri))
    editor.client.text_document_did_close(closed)
    assert await waiting == []


async def test_an_accepted_edit_is_a_change_that_the_model_reads(editor: Editor, daemon: Daemon) -> None:
    await opened(editor, daemon)
    widened(editor)
    (edit,) = await asked(editor)
    accept(editor, edit)
    await asked(editor)
    earlier = [(one["old"].strip(), one["new"].strip()) for one in daemon.rewrites[1]["task"]["changes"]]
    assert ("return 3 * r", "return 3 * r * scale") in earlier


async def test_a_model_for_next_edits_gets_the_window_it_has_learned(own_daemon: Daemon) -> None:
    lines = TEXT.replace("¦", "").replace("(r)", "(r, scale)").splitlines(keepends=True)
    own_daemon.restart(follows_edits=True)
    for row in (14, 3):
        first = max(row - 10, 0)
        window = "".join(lines[first : first + 21])
        async with launched(own_daemon.environment) as editor:
            await opened(editor, own_daemon, fills=[window.replace("3 * r", "3 * r * scale")], follows_edits=True)
            widened(editor)
            editor.before, editor.after = "".join(lines[:row]), "".join(lines[row:])
            edits = await asked(editor)
            assert [edit["text"] for edit in edits] == ["    return 3 * r * scale"]
            (region,) = own_daemon.rewrites[-1]["regions"]
            assert editor.text.encode()[region["start"] : region["end"]].decode() == window
