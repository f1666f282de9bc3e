import asyncio

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.live_service import infill, live, opened, talk

from lacuna_server.wire.protocol import Error, Feedback, Result, ServiceError

from .scripted import Script, serving

BODY = {"prompt": "x = ", "stream": True}


async def scraped(client) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels, in the order of the label names."""
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(response.text)
    return {
        (one.name, *(one.labels[name] for name in sorted(one.labels))): one.value
        for family in families
        for one in family.samples
    }


async def test_requests_are_counted_by_shape_and_outcome() -> None:
    script = Script(fills=("a\nb",))
    async with serving(script) as client:
        await client.post("/v1/completions", json=BODY)
        await client.post("/infill", json={"input_prefix": "", "input_suffix": ""})
        script.fail = ServiceError("worker_crashed", "gone")
        await client.post("/v1/completions", json=BODY)
        await client.post("/v1/completions", content="{")
        script.hold = asyncio.Event()
        async with client.stream("POST", "/v1/completions", json=BODY) as response:
            await anext(response.aiter_bytes())
        while not script.tickets[-1].cancelled:
            await asyncio.sleep(0.01)
        found = await scraped(client)
    for outcome in ("ok", "worker_crashed", "bad_message", "cancelled"):
        assert found["lacuna_requests_total", outcome, "completions"] == 1
    assert found["lacuna_requests_total", "ok", "infill"] == 1
    assert found["lacuna_request_seconds_count", "completions"] == 4


@pytest.mark.usefixtures("scripted_engine")
async def test_fills_of_all_clients_and_the_state_of_the_service_are_counted() -> None:
    async with (
        live() as (_, address),
        talk(address) as (talking, _),
        httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False) as client,
    ):
        await client.post("/v1/completions", json={"prompt": "x", "max_tokens": 3})
        await talking.send(opened("file:///one"), infill("one", "file:///one", steps=4))
        await talking.receive(Result)
        await talking.send(opened("file:///two", "CRASH"), infill("two", "file:///two"))
        await talking.receive(Error)
        await talking.send(Feedback("one", "partly_accepted", accepted_bytes=3))
        found = await scraped(client)
    assert (found["lacuna_fills_total", "ok"], found["lacuna_fills_total", "worker_crashed"]) == (2, 1)
    assert (found["lacuna_fill_nfe_sum",], found["lacuna_fill_tokens_total",]) == (7, 7)
    assert found["lacuna_fill_waited_seconds_count",] == found["lacuna_fill_busy_seconds_count",] == 3
    assert found["lacuna_worker_restarts_total",] == 1
    assert (found["lacuna_sessions",], found["lacuna_documents",]) == (1, 2)
    assert found["lacuna_feedback_total", "partly_accepted"] == 1
    assert (found["lacuna_queued",], found["lacuna_running",]) == (0, 0)
