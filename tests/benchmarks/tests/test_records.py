from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.records import Records

from lacuna_model.core.errors import RequestError


class Answer(msgspec.Struct, tag="answer"):
    value: int


def answers(path: Path | None, values: list[int], seed: int = 0, anew: bool = False) -> list[int]:
    """Ask for some values; returns those that are not known."""
    asked: list[int] = []

    def ask(value: int) -> Answer:
        asked.append(value)
        return Answer(value)

    with Records(path, Answer, Answer(seed), anew=anew) as records:
        records.run("values", values, ask, key=lambda value: value, answered=lambda one: one.value)
    return asked


def test_what_is_recorded_is_not_asked_again_and_a_line_that_was_cut_off_is(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    assert answers(path, [1, 2]) == [1, 2]
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        asked = answers(path, [1, 2])
        assert asked == [1, 2][2 - len(asked) :]
        assert path.read_bytes() == whole
    assert answers(path, [1, 2, 3]) == [3]
    assert answers(path, [1], anew=True) == answers(None, [1]) == [1]


def test_records_of_another_evaluation_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    answers(path, [1])
    with pytest.raises(RequestError, match=r"records\.jsonl: records of another evaluation"):
        answers(path, [1], seed=1)
    path.write_bytes(path.read_bytes() + b'{"type": "answer"}\n')
    with pytest.raises(RequestError, match=r"records\.jsonl: damaged records"):
        answers(path, [1])
