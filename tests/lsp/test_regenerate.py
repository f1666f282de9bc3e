from .editor import Editor
from .service import Daemon

SPAN = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 7}}


async def test_alternatives_are_offered_and_the_chosen_one_taken(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["old", "new", "newer", "new"])
    editor.answers = ["2: newer"]
    await editor.begin("a = old\n")
    said = [{"line": 0, "message": "undefined name"}]
    answer = await editor.do("regenerate", range=SPAN, diagnostics=said)
    assert answer["alternatives"] == ["new", "newer"]
    assert [action.title for action in editor.asked[0].actions or ()] == ["1: new", "2: newer"]
    assert editor.edited() == "a = newer\n"
    (request,) = daemon.requests
    assert request["task"]["candidates"] == 4
    assert (request["regions"][0]["start"], request["regions"][0]["end"]) == (4, 7)
    assert request["regions"][0]["single_line"]


async def test_a_client_may_choose_an_alternative_by_itself(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["new"])
    await editor.begin("a = old\n")
    answer = await editor.do("regenerate", range=SPAN, choose=False)
    assert answer == {"status": "offered", "alternatives": ["new"]}
    assert editor.asked == editor.applied == []
