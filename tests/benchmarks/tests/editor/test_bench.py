import pytest
from tests.benchmarks.editor import latency
from tests.benchmarks.editor.latency import BUDGETS, measure
from tests.lsp.service import Daemon


@pytest.fixture
def environment(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, daemon.environment[name])


@pytest.mark.usefixtures("environment")
async def test_the_latency_of_every_kind_of_answer_is_measured(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.plan(fills=["filled"])
    monkeypatch.setattr(latency, "STARTS", 1)
    monkeypatch.setattr(latency, "REST_S", 0.1)
    cells = {cell.what: cell for cell in await measure(1, busy=False, advance=lambda what: None)}
    assert set(cells) == {*BUDGETS, "warm, with the debounce"}
    assert all(cell.runs > 0 and cell.p50 <= cell.p95 for cell in cells.values())
    # At the left edge of a block, the scripted text belongs to no block and is not shown: it has no time.
    assert all((cell.p50 > 0) == (cell.runs > cell.empty) for cell in cells.values())
    assert cells["typed through"].runs > cells["typed through"].empty
    assert (cells["warm"].budget_p50, cells["warm"].budget_p95) == (400, 900)
