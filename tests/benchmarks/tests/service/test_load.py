import os

import pytest
from tests.benchmarks.service.load import Load, run
from tests.server.live_service import live
from tests.server.scripted.scripted_engine import expected

from lacuna_server.client.client import Address

SMALL = Load(sessions=8, keys_per_s=40, seconds=1.5, max_tokens=3)


@pytest.mark.usefixtures("scripted_engine")
async def test_every_request_gets_its_own_answer_or_a_clear_refusal() -> None:
    async with live(max_queued=4) as (service, address):
        report = await run(Address(f"http://{address}"), SMALL, [os.getpid()], expected)
        assert report.asked >= SMALL.sessions
        assert report.lost == 0
        assert report.crossed == report.twice == report.reconnected == 0
        assert set(report.outcomes) <= {"ok", "superseded", "overloaded"}
        assert report.outcomes["ok"] > 0
        assert 0 < report.p50_ms <= report.p95_ms <= report.p99_ms <= report.longest_ms
        assert len(report.memory_bytes) > 0
        assert min(report.memory_bytes) > 0
        status = service.status()
        assert (status.queued, status.running) == (0, 0)
