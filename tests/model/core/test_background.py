"""Work in the background: a fault ends one turn of it, and not the work."""

import threading

import pytest

from lacuna_model.core import background
from lacuna_model.core.background import Background

PATIENCE_S = 30.0


def test_work_goes_on_after_faults_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "PAUSE_S", 0.01)
    turns, reached, message = [], threading.Event(), "code = 17"

    def work() -> None:
        turns.append(threading.get_ident())
        if len(turns) % 2:
            raise ValueError(message)
        if len(turns) >= 6:
            reached.set()
            works.wake.wait()

    works = Background("worker", work)
    assert not works.is_started
    works.start()
    assert reached.wait(PATIENCE_S)
    works.stop()
    assert works.has_failed
    assert len(turns) == 6
    assert len(set(turns)) == 1
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert all("worker" in line and "ValueError" in line and message not in line for line in said)


def test_work_that_waits_is_stopped() -> None:
    works = Background("worker", lambda: works.stopped.wait())
    works.start()
    works.stop()
    assert not works.has_failed


def test_work_that_was_not_started_is_stopped() -> None:
    Background("worker", lambda: None).stop()
