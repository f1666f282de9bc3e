import os

import pytest
from tests.benchmarks.service.load import Load, run
from tests.server.live_service import live

from lacuna_server.client.client import Address

SMALL = Load(sessions=8, seconds=1.5, keys_per_s=40)


@pytest.mark.usefixtures("scripted_engine")
async def test_every_request_gets_an_answer_or_a_clear_refusal() -> None:
    async with live(max_queued=4) as (service, address):
        report = await run(Address(f"http://{address}"), SMALL, [os.getpid()])
        assert report.asked >= SMALL.sessions
        assert report.lost == 0
        assert set(report.outcomes) <= {"ok", "superseded", "overloaded"}
        assert report.outcomes["ok"] == len(report.latencies_ms) > 0
        assert min(report.memory_bytes) > 0
        assert report.row["requests"] == report.asked
        status = service.status()
        assert (status.queued, status.running) == (0, 0)
