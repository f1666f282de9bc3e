import os

import msgspec
import pytest
from tests.benchmarks.service.load import Load, Report, Typist, run
from tests.server.live_service import live

from lacuna_model.core.params import FillStats, InfillResult
from lacuna_server.client.client import Address

SMALL = Load(sessions=8, keys_per_s=40, seconds=1.5, max_tokens=3)


@pytest.mark.usefixtures("scripted_engine")
async def test_every_request_gets_its_own_answer_or_a_clear_refusal() -> None:
    async with live(max_queued=4) as (service, address):
        report = await run(Address(f"http://{address}"), SMALL, [os.getpid()])
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


def test_growth_is_measured_after_the_warm_up() -> None:
    report = Report(1, {}, 0, 0, 0, 0, 1.0, 1.0, 1.0, 1.0, memory_bytes=(10, 50, 100, 90, 105), warm_up_s=2.0)
    assert report.growth == pytest.approx(0.05)
    assert msgspec.structs.replace(report, memory_bytes=(10,)).growth == 0.0


def test_the_answer_to_another_request_is_noticed() -> None:
    typist, other = Typist(1, SMALL), Typist(2, SMALL)

    def filled(whose: Typist, before: str) -> InfillResult:
        return InfillResult("ok", before + "fill" + whose._after, ("fill",), FillStats())

    assert typist._is_answer_to(filled(typist, "abc"), "abc")
    assert not typist._is_answer_to(filled(typist, "abd"), "abc")
    assert not typist._is_answer_to(filled(other, "abc"), "abc")
