import queue
from collections.abc import Callable

import pytest
from tests.server.scripted.scripted_engine import ScriptedEngine

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_server.wire import frames
from lacuna_server.wire.frames import (
    Done,
    FromWorker,
    Refused,
    Start,
    Stepped,
    Stop,
    Stopped,
    Submission,
    ToWorker,
)
from lacuna_server.worker import main as worker
from lacuna_server.worker.main import Worker


class Pipe:
    """Runs a worker in this process. It calls ``on`` for every message of the worker, before the worker's next step."""

    def __init__(self, *messages: ToWorker, on: Callable[["Pipe", FromWorker], None] | None = None) -> None:
        self.said: list[FromWorker] = []
        self._inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._on = on
        for message in messages:
            self.put(message)

    def put(self, message: ToWorker) -> None:
        self._inbox.put(frames.encode(message)[frames.LENGTH.size :])

    def run(self, *, endings: int) -> list[FromWorker]:
        """Run the worker until this number of requests has ended."""
        self._endings = endings
        Worker(ScriptedEngine(), self._inbox, self._receive).run()
        return self.said

    def _receive(self, message: FromWorker) -> None:
        self.said.append(message)
        if self._on is not None:
            self._on(self, message)
        if isinstance(message, Done | Refused | Stopped):
            self._endings -= 1
            if self._endings == 0:
                self._inbox.put(None)


def start(
    id: int, text: str = "", *, steps: int = 3, snapshots: bool = False, preferred: bool = False, **options: float
) -> Start:
    request = InfillRequest(text, (Region(0, 0, max_tokens=steps),), options=DecodeOptions(**options))
    return Start(id, Submission(request, "", str(id), snapshots, preferred=preferred))


def steps_of(said: list[FromWorker]) -> list[int]:
    return [message.id for message in said if isinstance(message, Stepped)]


def test_requests_take_their_steps_in_turn() -> None:
    said = Pipe(start(1), start(2, steps=2), start(3)).run(endings=3)
    assert steps_of(said) == [1, 2, 3, 1, 2, 3, 1, 3]
    assert [message.id for message in said if isinstance(message, Done)] == [2, 1, 3]


def test_preferred_requests_take_their_steps_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "OTHERS_WAIT_S", 60.0)
    own = [start(id, steps=2, preferred=True) for id in (3, 4)]
    assert steps_of(Pipe(start(1), start(2), *own).run(endings=4)) == [3, 4, 3, 4, 1, 2, 1, 2, 1, 2]


def test_a_preferred_request_that_has_just_begun_is_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "OTHERS_WAIT_S", -60.0)  # the turn of others is overdue
    monkeypatch.setattr(worker, "PATIENCE_S", 600.0)
    assert steps_of(Pipe(start(1), start(2, preferred=True)).run(endings=2)) == [2, 2, 2, 1, 1, 1]


def test_other_requests_end_while_preferred_ones_never_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_the_preferred(pipe: Pipe, message: FromWorker) -> None:
        if isinstance(message, Done):
            pipe.put(Stop(1))

    monkeypatch.setattr(worker, "OTHERS_WAIT_S", 0.01)
    monkeypatch.setattr(worker, "PATIENCE_S", 0.01)
    said = Pipe(start(1, steps=10**9, preferred=True), start(2), on=stop_the_preferred).run(endings=2)
    assert [type(message) for message in said if message.id == 2] == [Stepped, Stepped, Stepped, Done]
    assert steps_of(said).count(1) > 3


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("REFUSE", "bad_request", "the regions are refused"),
        ("UNREADABLE", "", "the weights cannot be read"),
        ("FAULT", "internal", ""),
    ],
)
def test_a_fault_ends_its_own_request_only_and_a_refusal_says_its_reason_without_a_traceback(
    text: str, code: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    said = Pipe(start(1, f"{text} secret"), start(2)).run(endings=2)
    (refused,) = (message for message in said if isinstance(message, Refused))
    assert (refused.id, refused.code) == (1, code or refused.code)
    assert [message.id for message in said if isinstance(message, Done)] == [2]
    assert refused.message == message or (not message and "secret" not in refused.message)
    log = capfd.readouterr().err
    assert "secret" not in log  # the log has no code unless the setup allows it
    assert not message or ("Traceback" not in log and 'File "' not in log)
