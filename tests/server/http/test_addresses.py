"""The routes, and their description: schemathesis sends requests that follow it and requests that violate it."""

import json
from collections.abc import Iterator

import httpx2
import hypothesis
import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.requests import Request
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from lacuna_server.http import addresses
from lacuna_server.http.addresses import PLAIN, SHAPES

from .scripted import Script, application, serving

EXAMPLES = 10


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of a server in a separate thread, because schemathesis blocks until it gets an answer."""
    server = serving(Script(fills=("one\ntwo", "three")))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server) as client:
        yield str(client.base_url)


schema = schemathesis.openapi.from_dict(addresses.document("1.2.3"))


@schema.parametrize()
@hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
def test_every_answer_matches_the_description(case: schemathesis.Case, url: str) -> None:
    # Whether a request can be served also depends on the content of its prompt, which no schema can describe.
    case.call_and_validate(base_url=url, excluded_checks=[positive_data_acceptance])


def test_the_description_is_valid_and_complete() -> None:
    schema.validate()
    document = schema.raw_schema
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {path for shape in SHAPES for path in shape.paths} | {one.path for one in PLAIN}
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)


async def test_the_security_policy_of_pages_allows_nothing_from_other_hosts() -> None:
    async with serving(Script()) as client:
        response = await client.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "style=" not in response.text


async def test_a_page_of_an_allowed_origin_can_read_answers_and_no_other_page_can() -> None:
    friend = "http://localhost:3000"
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, content-type"}
    async with serving(Script(), token="secret", allowed_origins=(friend,)) as client:
        asked = await client.options("/v1/completions", headers={"origin": friend} | asks)
        read = await client.get("/v1/models", headers={"origin": friend, "authorization": "Bearer secret"})
        refused = await client.get("/v1/models", headers={"origin": friend})
        foreign = await client.options("/v1/completions", headers={"origin": "http://elsewhere"} | asks)
    assert [answer.status_code for answer in (asked, read, refused, foreign)] == [200, 200, 401, 400]
    allowed = [answer.headers.get("access-control-allow-origin") for answer in (asked, read, refused, foreign)]
    assert allowed == [friend, friend, friend, None]


ADDRESSES = [
    ("/chat/completions", "/v1/chat/completions"),
    ("/v1/v1/chat/completions", "/v1/chat/completions"),
    ("/openai/v1/completions", "/v1/completions"),
    ("/fim/completions", "/v1/fim/completions"),
    ("/edit/completions", "/v1/edit/completions"),
    ("/v1/infill", "/infill"),
    ("/models", "/v1/models"),
    ("/api/v1/models", "/v1/models"),
    ("/v1/health", "/health"),
    ("/v1/props", "/props"),
    ("/api/generate", "/v1/completions"),
    ("/api/chat", "/v1/chat/completions"),
    ("/v1/responses", "/v1/chat/completions"),
    ("/v1/messages", "/v1/chat/completions"),
]


def error_of(response: httpx2.Response, status: int, code: str) -> str:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    (name, error), *others = response.json().items()
    assert (name, others) == ("error", [])
    assert error["code"] == code
    assert set(error) == {"message", "type", "param", "code"}
    assert len(error["message"].splitlines()) == 1
    return error["message"]


async def test_an_unknown_address_names_the_right_one_or_where_all_are() -> None:
    async with serving(Script()) as client:
        for asked, right in ADDRESSES:
            for method in ("GET", "POST"):
                message = error_of(await client.request(method, asked, json={}), 404, "unknown_url")
                assert asked in message
                assert f"use {right}" in message, asked
        for asked in ("/v1/embeddings", "/v1", "/nothing/like/it", "/" + "x" * 3_000, "/a%0Ab"):
            message = error_of(await client.get(asked), 404, "unknown_url")
            assert "/openapi.json" in message
            assert len(message) < 300


@pytest.mark.parametrize("path", ["/ws", "/", "/v1/completions"])
async def test_a_websocket_at_an_unknown_address_is_told_the_right_one(path: str) -> None:
    async with serving(Script()) as client:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{client.base_url.host}:{client.base_url.port}{path}", proxy=None)
    assert refused.value.response.status_code == 404
    error = json.loads(refused.value.response.body)["error"]
    assert error["message"] == f"there is no websocket at {path}; connect to /v1/ws"


async def test_a_wrong_method_names_the_right_one() -> None:
    wrong = ("GET", "/v1/completions", "POST"), ("PUT", "/infill", "POST"), ("OPTIONS", "/v1/chat/completions", "POST")
    async with serving(Script()) as client:
        for method, path, takes in (*wrong, ("DELETE", "/v1/models/scripted", "GET"), ("POST", "/props", "GET")):
            response = await client.request(method, path)
            message = error_of(response, 405, "method_not_allowed")
            assert takes in response.headers["allow"]
            assert f"takes {response.headers['allow']}, not {method}" in message


async def test_a_route_that_fails_is_answered_in_json() -> None:
    app = application(Script())

    def fail(request: Request) -> None:
        raise ValueError("secret")

    app.add_route("/failing", fail)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        error_of(await client.get("/failing"), 500, "internal")


async def test_a_model_has_an_address_of_its_own() -> None:
    async with serving(Script()) as client:
        found = (await client.get("/v1/models/scripted")).json()
        listed = (await client.get("/v1/models")).json()["data"]
        message = error_of(await client.get("/v1/models/org/other"), 404, "model_not_found")
    assert listed == [found]
    assert "'org/other'" in message
    assert "scripted" in message


async def test_the_properties_of_llama_cpp() -> None:
    async with serving(Script(positions=2048), max_active=3) as client:
        props = (await client.get("/props")).json()
    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert props["total_slots"] == 3
    assert props["model_path"] == props["model_alias"] == "scripted"
    assert props["modalities"] == {"vision": False, "audio": False}
    async with serving(Script(state="loading")) as client:
        response = await client.get("/props")
    assert response.status_code == 503
    assert response.json()["error"]["code"] == 503
