"""What a cluster does when its processes are killed, and that every shape of clients is served."""

import asyncio
import contextlib
import os
import signal
import stat
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.lsp.editor import launched
from tests.server.cluster.live_cluster import LiveCluster
from tests.server.conftest import Front
from tests.server.live_service import Talk, infill, opened, talk
from tests.server.scripted.scripted_engine import expected
from tests.server.service.test_websocket import (  # noqa: F401 (a cluster speaks the same protocol)
    test_a_document_is_opened_changed_and_filled,
    test_a_newer_request_supersedes_the_older_one_or_waits_for_it,
    test_a_slow_reader_loses_no_answer,
    test_cancelled_work_stops_within_one_step,
    test_closing_a_document_cancels_its_requests,
    test_steps_are_streamed_if_they_are_requested,
)

from lacuna_server.client.client import Address, Client
from lacuna_server.wire.protocol import Error, Open, Progress, Result, ServerMessage, Step

pytestmark = pytest.mark.ray


@pytest.fixture
def front(cluster: LiveCluster) -> Front:
    return Front(cluster.address, cluster.count)


REPLICA, MODEL, INGRESS = "ServeReplica:lacuna:Engine", "lacuna_server.worker", "ServeReplica:lacuna:Ingress"
# So many that each of the two replicas has some, of which it works on two at a time.
NUM_DOCUMENTS, NUM_RUNNING = 8, 3
STEPS, STEP_S = 60, 0.02
BACK_S = 60


def metric(cluster: LiveCluster, name: str) -> float:
    with urllib.request.urlopen(f"http://{cluster.address}/metrics", timeout=20) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BACK_S):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.2)


async def hear(talking: Talk) -> ServerMessage:
    return await talking.receive(ServerMessage)  # type: ignore[arg-type]  # a union


def running(heard: list[ServerMessage]) -> set[str]:
    """The requests that have begun and are not answered."""
    return {one.id for one in heard if isinstance(one, Step)} - {one.id for one in answers(heard)}


def answers(heard: list[ServerMessage]) -> list[Result | Error]:
    return [one for one in heard if isinstance(one, Result | Error)]


def test_a_cluster_on_loopback_is_reached_from_this_machine_only_and_its_token_is_private(cluster: LiveCluster) -> None:
    (ours,) = cluster.processes("lacuna_server serve --cluster")
    raylets = cluster.processes("raylet")
    token = Path(cluster.variable(raylets[0], "RAY_AUTH_TOKEN_PATH"))
    assert cluster.variable(raylets[0], "RAY_AUTH_MODE") == "token"
    assert ours != raylets[0]
    assert len(token.read_text()) == 64
    assert (stat.S_IMODE(token.stat().st_mode), stat.S_IMODE(token.parent.stat().st_mode)) == (0o600, 0o700)
    assert not (cluster.folder / ".ray" / "auth_token").exists()
    listening = cluster.listening()
    said = " ".join(command for commands in listening.values() for command in commands)
    for kind in ("haproxy", "raylet", "gcs_server", "ServeReplica:lacuna:Engine", "ServeReplica:lacuna:Ingress"):
        assert kind in said
    for loopback in ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"):
        listening.pop(loopback, None)
    assert listening == {}


@pytest.mark.parametrize("victim", [MODEL, REPLICA])
async def test_requests_of_a_killed_process_are_started_again_and_answered_once(
    cluster: LiveCluster, victim: str
) -> None:
    before = await asyncio.to_thread(metric, cluster, "lacuna_requests_restarted_total")
    heard: list[ServerMessage] = []
    async with talk(cluster.address) as (talking, _):
        for number in range(NUM_DOCUMENTS):
            name = f"doc{number}"
            await talking.send(opened(name, name), infill(name, name, steps=STEPS, step_s=STEP_S, snapshots=True))
        while len(running(heard)) < NUM_RUNNING:  # more than one replica runs at once, so that each of them has work
            heard.append(await hear(talking))
        victims = cluster.processes(victim)
        assert len(victims) == 2
        os.kill(victims[0], signal.SIGKILL)
        while len(answers(heard)) < NUM_DOCUMENTS:
            heard.append(await hear(talking))
        with contextlib.suppress(TimeoutError):  # a second answer would come now
            async with asyncio.timeout(1):
                while True:
                    heard.append(await hear(talking))
    assert sorted(one.id for one in answers(heard)) == [f"doc{number}" for number in range(NUM_DOCUMENTS)]
    for one in answers(heard):
        assert isinstance(one, Result)
        assert one.result.fills == (expected(one.id, 0),)
    os.kill(victims[1], 0)  # the other one lives
    assert await asyncio.to_thread(metric, cluster, "lacuna_requests_restarted_total") > before
    await until(lambda: metric(cluster, "lacuna_engine_ready") == 2)


async def test_clients_of_a_killed_ingress_go_on_with_the_next_one(cluster: LiveCluster) -> None:
    address = Address(f"http://{cluster.address}", "")
    async with await Client.connect(address, give_up_s=BACK_S) as client:
        client.open(Open("a", "text", 1))
        answers = client.infill(infill("", "a", steps=STEPS, step_s=STEP_S))
        assert isinstance(await anext(answers), Progress | Step)
        (ingress,) = cluster.processes(INGRESS)
        os.kill(ingress, signal.SIGKILL)
        *_, last = [answer async for answer in answers]
        assert isinstance(last, Result)
        assert last.result.fills == (expected("text", 0),)


async def test_a_text_that_crashes_the_model_is_told_so_and_others_are_served(cluster: LiveCluster) -> None:
    async with talk(cluster.address) as (talking, _):
        await talking.send(opened("a", "CRASH"), opened("b"), infill("1", "a", steps=3))
        error = await talking.receive(Error)
        assert (error.code, error.id) == ("worker_crashed", "1")
        await talking.send(infill("2", "b"))
        assert (await talking.receive(Result)).id == "2"
    await until(lambda: metric(cluster, "lacuna_engine_ready") == 2)


async def test_http_pages_and_refusals_are_those_of_one_machine(cluster: LiveCluster) -> None:
    async with httpx2.AsyncClient(base_url=f"http://{cluster.address}", trust_env=False, timeout=30) as client:
        filled = await client.post("/v1/completions", json={"prompt": "def f(", "suffix": "):", "max_tokens": 2})
        assert filled.json()["choices"][0]["text"] == expected("def f():", 6)
        streamed = await client.post("/v1/completions", json={"prompt": "a", "suffix": "b", "stream": True})
        assert streamed.text.endswith("data: [DONE]\n\n")
        assert (await client.get("/health")).status_code == 200
        assert "playground" in (await client.get("/")).text.lower()
        assert (await client.post("/v1/completions", content=b"{")).status_code == 400
        foreign = await client.get("/health", headers={"Origin": "http://evil.example"})
        assert foreign.status_code == 403


async def test_the_language_server_suggests_with_a_cluster(cluster: LiveCluster, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def open_account(owner):\n    return Account(owner)\n")
    async with launched(os.environ, "--engine", f"http://{cluster.address}") as editor:
        await editor.initialize({"debounce": False, "minConfidence": 0}, folder=tmp_path)
        editor.open("value = ¦\n")
        (suggested,) = await editor.suggest(invoked=True)
        assert suggested.startswith("<")
        # The folder is read in the background; what it holds comes from the client, since no ingress reads it.
        editor.open("# QUOTE\nfrom shop import open_account\n\nopen_account(¦)\n", uri=(tmp_path / "a.py").as_uri())
        async with asyncio.timeout(BACK_S):
            while await editor.suggest(invoked=True) != ["shop.py"]:
                editor.type(" ")


async def test_no_file_of_the_server_is_read(cluster: LiveCluster) -> None:
    async with talk(cluster.address) as (talking, _):
        await talking.send(Open("a", "READ", 1, workspace="/etc"))
        assert (await talking.receive(Error)).code == "unauthorized"
        await talking.send(opened("b", "READ"), infill("1", "b"))
        assert (await talking.receive(Result)).result.fills == ("no workspace",)
