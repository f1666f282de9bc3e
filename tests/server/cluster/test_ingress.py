"""An ingress as clients see it, with engine replicas and other ingresses that a script plays."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import httpx2
import msgspec
import pytest
import uvicorn
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from tests.server.live_service import infill, listening, opened, talk
from tests.server.scripted.scripted_engine import expected
from websockets.exceptions import ConnectionClosed, InvalidStatus

from lacuna_cluster import ingress as ingress_module
from lacuna_cluster import users
from lacuna_cluster.ingress import Ingress
from lacuna_cluster.links import Answered, Ask, EngineFigures, IngressFigures, Reply
from lacuna_cluster.users import User
from lacuna_model.core.params import FillStats, InfillResult
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Error, Goodbye, Result, Status
from lacuna_server.worker.scheduler import Finished

TOKENS = {"alice": "token of alice", "bob": "token of bob"}
USERS = {name: User(users.hashed(token), requests_per_minute=2) for name, token in TOKENS.items()}
BODY = {"prompt": "before", "suffix": "after"}


@dataclass
class Fleet:
    """Two engine replicas that answer at once, and this ingress beside another one."""

    asked: list[Ask] = field(default_factory=list)
    others: list[IngressFigures] = field(default_factory=lambda: [IngressFigures("other", 0, {})])
    itself: Ingress | None = None
    answers: bool = True

    async def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        self.asked.append(ask)
        fill = expected(ask.submission.request.text, ask.submission.request.regions[0].start)
        stats = FillStats(tokens=3)
        yield Answered(InfillResult("ok", (fill,), stats), Finished("ok", 0.0, stats=stats))

    async def engines(self) -> list[EngineFigures]:
        if not self.answers:
            raise ConnectionError("no replica answers")
        status = Status("small", "ready", queued=1, running=2)
        return [EngineFigures(name, {"small": status}) for name in ("r1", "r2")]

    async def ingresses(self) -> list[IngressFigures]:
        return [*self.others, *([await self.itself.figures()] if self.itself is not None else [])]

    async def metrics(self) -> list[tuple[str, bytes]]:
        if not self.answers:
            raise ConnectionError("no replica answers")
        assert self.itself is not None
        return [own := await self.itself.metrics(), ("i2", own[1])]


@asynccontextmanager
async def serving(
    people: dict[str, User] | None = None,
    proxy: Mapping[str, str] = MappingProxyType({}),
    **config: Any,
) -> AsyncIterator[tuple[str, Fleet]]:
    fleet = Fleet()
    ingress = Ingress("i1", ServerConfig(model="small", **config), fleet, ("small", "large"), **proxy)
    fleet.itself = ingress
    ingress.reconfigure(people or {})
    ingress.start()
    server = uvicorn.Server(uvicorn.Config(ingress.application(), port=0, lifespan="on", log_level="error"))
    async with listening(server) as port:
        try:
            yield f"127.0.0.1:{port}", fleet
        finally:
            await ingress.close()


@asynccontextmanager
async def client(address: str, token: str = "", **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
    headers = ({"Authorization": f"Bearer {token}"} if token else {}) | headers
    async with httpx2.AsyncClient(base_url=f"http://{address}", headers=headers, trust_env=False) as one:
        yield one


def told(token: str) -> dict[str, Any]:
    return {"additional_headers": {"Authorization": f"Bearer {token}"}}


async def test_users_are_known_by_their_tokens_over_http_and_the_websocket() -> None:
    async with serving(USERS) as (address, fleet):
        async with client(address) as nobody:
            assert (await nobody.post("/v1/completions", json=BODY)).status_code == 401
            assert (await nobody.get("/metrics")).status_code == 401
            assert (await nobody.get("/health")).status_code == 200
        async with client(address, TOKENS["alice"]) as alice:
            assert (await alice.post("/v1/completions", json=BODY)).status_code == 200
        with pytest.raises(InvalidStatus):
            async with talk(address):
                pass
        async with talk(address, **told(TOKENS["bob"])) as (talking, _):
            await talking.send(opened("a", "text"), infill("1", "a"))
            assert (await talking.receive(Result)).result.fills == (expected("text", 0),)
        assert [ask.submission.session.split()[0] for ask in fleet.asked] == ["alice", "bob"]


async def test_users_come_after_the_application_and_stay_where_others_cannot_be_read() -> None:
    """As Ray Serve does it: Starlette makes the guard at the lifespan, and ``reconfigure`` is called later."""
    async with serving() as (address, fleet), client(address) as nobody:
        assert (await nobody.post("/v1/completions", json=BODY)).status_code == 200
        assert fleet.itself is not None
        fleet.itself.reconfigure(msgspec.to_builtins(USERS))
        assert (await nobody.post("/v1/completions", json=BODY)).status_code == 401
        with pytest.raises(msgspec.ValidationError):
            fleet.itself.reconfigure({"alice": {"colour": 1}})
        assert (await nobody.post("/v1/completions", json=BODY)).status_code == 401
        async with client(address, TOKENS["alice"]) as alice:
            assert (await alice.post("/v1/completions", json=BODY)).status_code == 200


async def test_the_header_of_a_proxy_counts_only_with_the_proxys_token() -> None:
    proxy = {"user_header": "X-User", "proxy_token": users.hashed("of the proxy")}
    async with serving({"alice": User()}, proxy) as (address, fleet):
        for token, user, status in [
            ("of the proxy", "alice", 200),
            ("of the proxy", "mallory", 401),  # not listed
            ("of the proxy", "", 401),
            ("another", "alice", 401),
            ("", "alice", 401),
        ]:
            async with client(address, token, **{"X-User": user}) as one:
                assert (await one.post("/v1/completions", json=BODY)).status_code == status
        assert [ask.submission.session.split()[0] for ask in fleet.asked] == ["alice"]
    async with serving(None, proxy) as (address, _), client(address, "of the proxy", **{"X-User": "eve"}) as eve:
        assert (await eve.post("/v1/completions", json=BODY)).status_code == 200


async def test_a_refusal_over_the_quota_says_when_to_try_again_and_leaves_an_audit_line() -> None:
    with capture_logs(processors=[merge_contextvars]) as logged:
        async with serving(USERS) as (address, _), client(address, TOKENS["alice"]) as alice:
            codes = [(await alice.post("/v1/completions", json=BODY)).status_code for _ in range(2)]
            refused = await alice.post("/v1/completions", json=BODY)
            assert (*codes, refused.status_code) == (200, 200, 429)
            assert 0 < int(refused.headers["Retry-After"]) <= 60
            async with talk(address, **told(TOKENS["alice"])) as (talking, _):
                await talking.send(opened("a", "secret text"), infill("1", "a"))
                error = await talking.receive(Error)
                assert (error.code, error.id) == ("rate_limited", "1")
                assert error.retry_after_ms > 0
    said = [line for line in logged if line["event"] == "refused"]
    assert [(line["user"], line["code"], line["what"]) for line in said] == [
        ("alice", "rate_limited", "completions"),
        ("alice", "rate_limited", "infill"),
    ]
    assert "secret" not in str(said)


async def test_metrics_of_all_replicas_are_at_one_address() -> None:
    async with serving(USERS) as (address, fleet), client(address, TOKENS["alice"]) as alice:
        await alice.post("/v1/completions", json=BODY)
        await asyncio.sleep(0.05)  # for the first look at the engine replicas
        text = (await alice.get("/metrics")).text
        for line in (
            'lacuna_user_requests_total{ingress="i1",outcome="ok",user="alice"} 1.0',
            'lacuna_user_tokens_total{ingress="i2",user="alice"} 3.0',
            'lacuna_engine_running{model="small",replica="r2"} 2.0',
        ):
            assert text.count(line) == 1, line
        assert "before" not in text
        fleet.answers = False
        text = (await alice.get("/metrics")).text
        assert 'lacuna_user_requests_total{ingress="i1",outcome="ok",user="alice"} 1.0' in text


async def test_a_request_may_name_a_model() -> None:
    async with serving() as (address, fleet), client(address) as one:
        assert [model["id"] for model in (await one.get("/v1/models")).json()["data"]] == ["small", "large"]
        assert (await one.post("/v1/completions?model=large", json=BODY)).status_code == 200
        refused = await one.post("/v1/completions?model=huge", json=BODY)
        assert refused.status_code == 400
        assert "there are small, large" in refused.json()["error"]["message"]
        await one.post("/v1/completions", json=BODY)
        assert [ask.model for ask in fleet.asked] == ["large", "small"]


async def test_an_ingress_that_is_replaced_finishes_and_sends_its_clients_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingress_module, "TICK_S", 0.02)
    async with serving() as (address, fleet), talk(address) as (talking, _):
        await talking.send(opened("a", "text"))
        await asyncio.sleep(0.1)
        await talking.send(infill("1", "a"))
        await talking.receive(Result)
        fleet.itself = None  # Ray Serve no longer counts it among the running ones
        assert (await talking.receive(Goodbye)).reason == ingress_module.GOING
        with pytest.raises(ConnectionClosed):
            await talking.connection.recv()
