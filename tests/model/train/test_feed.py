import os
import signal
from pathlib import Path

import pytest
from tests.model.train.test_batches import same

from lacuna_model.train.feed import Feed, FeedError
from lacuna_model.train.shards import ShardError

from .train_tiny import source


@pytest.mark.parametrize(("first", "workers"), [(0, 1), (5, 2), (4, 3)])
def test_workers_give_the_batches_in_order(tmp_path: Path, first: int, workers: int) -> None:
    drawing = source(tmp_path)
    with Feed(drawing, first, workers) as feed:
        for number in range(first, first + 7):
            assert same(feed.next(), drawing.draw(number))


def test_what_a_worker_meets_is_raised(tmp_path: Path) -> None:
    drawing = source(tmp_path)
    path = tmp_path / "train-00000.shard"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with Feed(drawing, 0, 1) as feed, pytest.raises(ShardError, match=r"train-00000\.shard: the shard is damaged"):
        feed.next()


def test_a_worker_that_was_killed_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lacuna_model.train.feed._LOOK", 0.1)
    with Feed(source(tmp_path), 0, 1) as feed:
        feed.next()
        os.kill(feed.processes[0].pid or 0, signal.SIGKILL)
        with pytest.raises(FeedError, match="worker 0, which draws batches, ended with exit code -9"):
            drain(feed)


def drain(feed: Feed) -> None:
    """Take all that is ready, and more."""
    for _ in range(50):
        feed.next()


def test_no_worker_outlives_its_feed(tmp_path: Path) -> None:
    with Feed(source(tmp_path), 0, 2) as feed:
        feed.next()
    assert not any(process.is_alive() for process in feed.processes)
