"""The server while the model loads, after the engine is lost, and without any engine."""

import asyncio
from itertools import groupby

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from .editor import Editor, launched, until
from .service import Daemon


async def test_while_the_model_loads_the_server_shows_its_progress_and_a_command_waits(own_daemon: Daemon) -> None:
    own_daemon.restart(hold=True)
    async with launched(own_daemon.environment) as editor:
        await editor.begin("value = <<fill>>¦\n", ready=False)
        assert await editor.suggest() == []
        await until(lambda: editor.progress)
        await until(lambda: [status for status in editor.statuses if status.fraction == 0.5])
        filling = asyncio.ensure_future(editor.do("fillRegions", select="markers"))
        await until(lambda: heard(editor, "waits for the engine, half of it is there"))
        own_daemon.plan()
        assert (await filling)["status"] == "applied"
        assert editor.edited() == "value = filled\n"
        await editor.ready()
        assert await editor.suggest() == ["filled"]
        (seen,) = [seen for seen in editor.progress if getattr(seen[0], "title", "") == "Lacuna"]
        states = [state for state, _ in groupby(editor.statuses, key=lambda status: status.state)]
        assert states == ["starting", "loading", "ready"]
        half = next(status for status in editor.statuses if status.fraction == 0.5)
        assert (half.health, half.quiescent, half.message) == ("ok", False, "half of it is there")
        assert half.advice == ""
        assert editor.statuses[-1].quiescent
        assert isinstance(seen[0], types.WorkDoneProgressBegin)
        await until(lambda: isinstance(seen[-1], types.WorkDoneProgressEnd))
        assert editor.messages == []


async def test_a_change_that_only_the_model_can_follow_waits_for_it(own_daemon: Daemon) -> None:
    own_daemon.restart(hold=True)
    async with launched(own_daemon.environment) as editor:
        await editor.begin("def area(r¦):\n    return 3 * r\n", ready=False)
        editor.type(", pi")
        place = {"line": 0, "character": 0}
        following = asyncio.ensure_future(editor.do("propagate", position=place, scope="file"))
        await until(lambda: heard(editor, "waits for the engine, half of it is there"))
        own_daemon.plan(fills=["    return pi * r\n"], log_prob=-0.1)
        assert (await following)["status"] == "applied"
        assert editor.edited() == "def area(r, pi):\n    return pi * r\n"


def heard(editor: Editor, message: str) -> bool:
    """Whether the client was told this progress."""
    return any(getattr(one, "message", "") == message for seen in editor.progress for one in seen)


async def test_a_model_that_cannot_be_loaded_is_reported_once(own_daemon: Daemon) -> None:
    own_daemon.restart(damaged=True)
    async with launched(own_daemon.environment) as editor:
        await editor.begin("value = ¦\n", ready=False)
        await until(lambda: editor.messages)
        assert await editor.suggest() == await editor.suggest(invoked=True) == []
        assert editor.messages == ["Lacuna: No engine: the weights are damaged"]
        # The document may reach the service after the first failure was told: then it loads, and fails, once more.
        await until(lambda: editor.statuses[-1].state == "failed")
        last = editor.statuses[-1]
        assert (last.health, last.quiescent) == ("error", True)
        assert "`lacuna doctor`" in last.advice
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}
        with pytest.raises(JsonRpcException, match="the weights are damaged") as refused:
            await editor.do("regenerate", range=place)
        assert refused.value.code == types.LSPErrorCodes.RequestFailed
        own_daemon.plan()  # the weights are repaired; opening a document tries them again
        async with launched(own_daemon.environment) as other:
            await other.begin(ready=False)
            await other.ready()
            assert await other.suggest() == ["filled"]
        editor.open("other = ¦\n")
        await editor.ready()
        assert await editor.suggest() == ["filled"]


async def test_an_unreachable_engine_and_a_lost_one_are_each_reported_once_and_connected(own_daemon: Daemon) -> None:
    url = own_daemon.running.url
    own_daemon.kill()
    async with launched(own_daemon.environment, "--engine", url) as editor:
        await editor.begin("value = ¦\n", ready=False)
        assert await editor.suggest() == []
        await until(lambda: editor.messages)
        assert editor.messages == [f"Lacuna: No engine: {url} does not answer"]
        status = await editor.command("lacuna.status")
        assert (status["state"], status["health"]) == ("unreachable", "error")
        assert "`lacuna serve`" in status["advice"]
        assert url in status["message"]
        own_daemon.start(int(url.rpartition(":")[2]))
        await editor.ready()
        assert await editor.suggest() == ["filled"]
        own_daemon.kill()
        await until(lambda: len(editor.messages) > 1)
        # Meanwhile the server answers every request with an empty list.
        for character in "abc":
            editor.type(character)
            assert await editor.suggest() == []
        assert (await editor.command("lacuna.status"))["state"] == "lost"
        assert (editor.statuses[-1].state, editor.statuses[-1].health) == ("lost", "error")
        assert "`lacuna status`" in editor.statuses[-1].advice
        assert editor.messages[1:] == ["Lacuna: The connection to the engine broke; it is tried again."]
        own_daemon.start(int(url.rpartition(":")[2]))
        await editor.ready()
        own_daemon.plan(fills=["back"])
        editor.type(" + ")
        assert await editor.suggest() == ["back"]
        assert own_daemon.requests[-1]["text"] == "value = abc + \n"
        assert len(editor.messages) == 2


async def test_a_missing_token_is_reported_with_the_remedy(own_daemon: Daemon) -> None:
    own_daemon.kill()
    own_daemon.start(token="secret")
    url = own_daemon.running.url
    (own_daemon.folder / "elsewhere").mkdir(mode=0o700)
    elsewhere = own_daemon.environment | {"XDG_RUNTIME_DIR": str(own_daemon.folder / "elsewhere")}
    async with launched(elsewhere, "--engine", url) as editor:
        await editor.initialize(ready=False)
        await until(lambda: editor.messages)
        assert editor.messages == [f"Lacuna: No engine: {url} asks for a token: set $LACUNA_TOKEN for lacuna-lsp"]
    async with launched(elsewhere | {"LACUNA_TOKEN": "secret"}, "--engine", url) as editor:
        await editor.initialize()


async def test_the_state_is_sent_only_to_clients_with_the_capability(editor: Editor) -> None:
    await editor.initialize(without="experimental")
    assert editor.statuses == []
