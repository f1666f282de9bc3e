"""The speed that the default model is chosen by is kept, and put right where it is wrong."""

from pathlib import Path

import pytest

from lacuna_model.hub import models, speed

LARGE = models.LARGE_WEIGHTS


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path))


def test_nothing_is_known_before_it_was_measured() -> None:
    assert models.line_ms() is None


def test_the_speed_of_a_smaller_model_tells_that_of_the_large_one() -> None:
    speed.learn(100.0, LARGE // 2)
    assert models.line_ms() == pytest.approx(200.0, rel=1e-3)


def test_a_wrong_speed_is_put_right_and_a_similar_one_stays() -> None:
    speed.correct(400.0, LARGE)
    speed.correct(500.0, LARGE)
    assert models.line_ms() == pytest.approx(400.0)
    speed.correct(100.0, LARGE)
    assert models.line_ms() == pytest.approx(100.0)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"line_ms": null}', '{"line_ms": -1}', '{"line_ms": "1"}'])
def test_a_damaged_file_counts_as_no_measurement(content: str) -> None:
    models.speed_file().parent.mkdir()
    models.speed_file().write_text(content)
    assert models.line_ms() is None
