import time
from pathlib import Path

import pytest
from tests.server.conftest import Serve
from tests.server.scripted.scripted_engine import expected

from lacuna_model.core.params import InfillRequest, InfillResult, Region, Snapshot
from lacuna_server.client.blocking import connected
from lacuna_server.client.starting import Address
from lacuna_server.wire.protocol import ServiceError

TEXT = "x = \ny = \n"
REQUEST = InfillRequest(TEXT, (Region(4, 4, max_tokens=3), Region(9, 9, max_tokens=3)), path="code.py")
FILLS = (expected(TEXT, 4), expected(TEXT, 9))


def test_a_request_is_filled_step_by_step(served: Address) -> None:
    with connected(served) as engine:
        assert engine.fill(REQUEST).fills == FILLS
        stream, steps = engine.stream(REQUEST), list[Snapshot]()
        result: InfillResult | None = None
        while result is None:
            try:
                steps.append(next(stream))
            except StopIteration as end:
                result = end.value
        assert result.fills == FILLS
        # A slow reader gets the latest step only.
        assert 1 <= len(steps) <= 3
        assert steps[-1].fills == FILLS
        assert engine.status().documents == 0


def test_a_stream_that_is_closed_cancels_its_request(served: Address) -> None:
    slow = InfillRequest("SLOW", (Region(0, 0, max_tokens=100_000),))
    with connected(served) as engine:
        stream = engine.stream(slow)
        next(stream)
        assert engine.status().running == 1
        stream.close()
        while engine.status().running:
            time.sleep(0.01)
        assert engine.fill(REQUEST).fills == FILLS


def test_a_model_that_failed_is_loaded_again_once(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_MENDED", str(tmp_path / "mended"))
    address = serve("load_when_mended")
    with connected(address) as engine, pytest.raises(ServiceError, match="the weights are damaged"):
        engine.wait(lambda fraction: None)
    (tmp_path / "mended").touch()
    with connected(address) as engine:
        engine.wait(lambda fraction: None)
        assert engine.fill(REQUEST).fills == FILLS


def test_workspaces_and_paths_are_made_absolute(
    served: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private").write_text("of the project")
    monkeypatch.chdir(tmp_path)
    request = InfillRequest("READ", (Region(0, 0),), path="code.py", workspace=".")
    with connected(served) as engine:
        engine.workspaces.read(".", 1.0)
        assert engine.fill(request).fills == ("of the project",)


def test_a_connection_that_was_dropped_meanwhile_is_opened_again(serve: Serve) -> None:
    """Between two calls nobody answers the pings of the service."""
    with connected(serve("load", ping_interval_s=0.1, ping_timeout_s=0.1)) as engine:
        assert engine.fill(REQUEST).fills == FILLS
        time.sleep(1.0)
        assert engine.fill(REQUEST).fills == FILLS
