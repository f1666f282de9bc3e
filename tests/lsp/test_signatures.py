from typing import Any

from lacuna_lsp.client.protocol import DID_FIND_SIGNATURES

from .editor import Editor
from .service import Daemon

GLUE = {"server": "paperls", "name": "glue", "text": "glue(a: Sheet,\n     b: Sheet) -> Sheet"}


def tell(editor: Editor, *signatures: dict[str, str]) -> None:
    params: dict[str, Any] = {
        "textDocument": {"uri": editor.uri},
        "position": {"line": editor.position.line, "character": editor.position.character},
        "signatures": list(signatures),
    }
    editor.client.protocol.notify(DID_FIND_SIGNATURES, params)


async def test_what_other_servers_say_travels_with_the_request(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("sheet = glue(¦\n")
    tell(editor, GLUE, {"server": "paperls", "name": "blank", "text": " \n"})
    await editor.suggest()
    (signature,) = daemon.requests[0]["signatures"]
    assert signature["path"] == "/work/code.py"
    assert signature["text"] == "glue(a: Sheet,\n     b: Sheet) -> Sheet\n"
    assert signature["reason"] == "what paperls says of `glue`"


async def test_long_and_many_answers_are_cut(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("sheet = glue(¦\n")
    tell(editor, *[GLUE | {"text": "x" * 100_000 + "\n" * 100 + "y"}] * 100)
    await editor.suggest()
    told = daemon.requests[0]["signatures"]
    assert len(told) == 8
    assert all(len(one["text"]) == 400 for one in told)


async def test_a_setting_turns_it_off(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("sheet = glue(¦\n", askServers=False)
    tell(editor, GLUE)
    await editor.suggest()
    assert not daemon.requests[0].get("signatures")


async def test_it_holds_for_lines_near_by_alone(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("sheet = glue(¦\n")
    tell(editor, GLUE)
    editor.type("1)\nb = ")
    await editor.suggest()
    assert len(daemon.requests[0]["signatures"]) == 1
    editor.type("1\nc = 2\nd = ")
    await editor.suggest()
    assert not daemon.requests[-1].get("signatures")
