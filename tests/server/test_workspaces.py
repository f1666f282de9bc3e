"""The service reads the workspaces only of clients that send the token."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from lacuna_server.client.client import Address, Client
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import Error, Open, Result
from lacuna_server.worker.scheduler import Ticket

from .live_service import fill, infill, live, opened, talk

TOKEN = "a-token-of-this-start"
SECRET = "what the private file says"


@pytest.fixture
def workspace(scripted_engine: Path) -> str:
    (scripted_engine / "private").write_text(SECRET)
    return str(scripted_engine)


def sending(token: str) -> dict[str, Any]:
    return {"additional_headers": {"Authorization": f"Bearer {token}"}} if token else {}


def first_fill(result: Result) -> str:
    return result.result.fills[0]


async def test_the_workspace_of_any_other_client_is_not_read(workspace: str) -> None:
    async with live(token_of_start=TOKEN) as (_, address):
        for token in ("", "a wrong one", TOKEN[:-1], TOKEN + "x"):
            async with talk(address, **sending(token)) as (talking, _):
                await talking.send(Open("a", "READ", 1, "/a.py", "", workspace))
                refused = await talking.receive(Error)
                assert (refused.code, refused.uri) == ("unauthorized", "a")
                assert "service.json" in refused.message
                assert "Authorization: Bearer" in refused.message
                await talking.send(infill("1", "a"))
                assert (await talking.receive(Error)).code == "unknown_document"
                # A text that the client itself sends is still filled.
                await talking.send(opened("b", "READ"), infill("2", "b"))
                assert first_fill(await talking.receive(Result)) == "no workspace"


@pytest.mark.parametrize(
    ("token", "said"), [(TOKEN, SECRET), ("", "no workspace"), ("of an earlier start", "no workspace")]
)
async def test_our_client_fills_without_the_workspace_if_it_has_no_valid_token(
    workspace: str, token: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        live(token_of_start=TOKEN) as (_, address),
        await Client.connect(Address(f"http://{address}", token)) as client,
    ):
        client.open(Open("a", "READ", 1, workspace=workspace))
        await client.status()  # by now a refusal has arrived, and the client has reacted to it
        await client.status()
        assert first_fill(await fill(client)) == said
    assert ("the token is not the service's" in caplog.text) == (token == "of an earlier start")


async def test_the_token_that_every_client_needs_also_allows_a_workspace(workspace: str) -> None:
    async with live(token="asked") as (_, address), talk(address, **sending("asked")) as (talking, _):
        await talking.send(Open("a", "READ", 1, "/a.py", "", workspace), infill("1", "a"))
        assert first_fill(await talking.receive(Result)) == SECRET


async def test_http_clients_with_the_token_share_no_context_with_others(workspace: str) -> None:
    kept: list[str] = []

    def submit(submission: Submission) -> Ticket:
        kept.append(submission.session)
        return submitted(submission)

    async with live(token_of_start=TOKEN) as (service, address):
        submitted = service.model.submit
        service.model.submit = submit  # type: ignore[method-assign]
        async with httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False, timeout=60) as client:
            for token in ("", "a wrong one", TOKEN):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                body = {"input_prefix": "a", "input_suffix": "b"}
                assert (await client.post("/infill", json=body, headers=headers)).status_code == 200
    stranger, other, own = kept
    assert stranger == other
    assert own != stranger


async def test_a_service_that_other_machines_reach_reads_no_workspace(workspace: str) -> None:
    async with (
        live(host="0.0.0.0", token="asked") as (_, address),
        talk(address, **sending("asked")) as (talking, welcome),
    ):
        assert not welcome.workspaces
        await talking.send(Open("a", "READ", 1, "/a.py", "", workspace), infill("1", "a"))
        assert first_fill(await talking.receive(Result)) == "no workspace"


async def test_no_http_request_names_a_workspace(workspace: str) -> None:
    infill = {"input_prefix": "READ", "input_suffix": "", "n_predict": 1}
    fill = {"model": "m", "prompt": "READ", "suffix": "", "max_tokens": 1}
    named = {name: workspace for name in ("workspace", "root", "folder", "cwd")}
    async with (
        live(token_of_start=TOKEN) as (_, address),
        httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False, timeout=60) as client,
    ):
        for headers in ({}, {"Authorization": f"Bearer {TOKEN}"}):
            for path, body in (("/infill", infill), ("/v1/completions", fill), ("/v1/fim/completions", fill)):
                for more in ({}, named, {"path": f"{workspace}/private"}):
                    answer = await client.post(path, json=body | more, headers=headers)
                    assert SECRET not in answer.text
                    assert answer.status_code in (200, 400)
                assert "no workspace" in (await client.post(path, json=body, headers=headers)).text
