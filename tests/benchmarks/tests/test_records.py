from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.records import Records

from lacuna_model.core.errors import RequestError


class Asked(msgspec.Struct, tag="asked"):
    seed: int


class Answer(msgspec.Struct, tag="answer"):
    value: int


def answers(path: Path | None, values: list[int], seed: int = 0) -> list[int]:
    """Ask for some values; returns those that are not known."""
    asked: list[int] = []

    def ask(value: int) -> Answer:
        asked.append(value)
        return Answer(value)

    with Records(path, Answer, Asked(seed)) as records:
        found = records.run("values", values, ask, key=lambda value: value, answered=lambda one: one.value)
    assert {one.value for one in found} >= set(values)
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
    assert answers(None, [1]) == [1]


def test_records_of_another_evaluation_and_damaged_ones_are_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    answers(path, [1])
    before = path.read_bytes()
    with pytest.raises(RequestError, match=r"records\.jsonl: records of another evaluation"):
        answers(path, [1], seed=1)
    path.write_bytes(before + b'{"type": "answer"}\n')
    with pytest.raises(RequestError, match=r"records\.jsonl: damaged records"):
        answers(path, [1])
    with pytest.raises(RequestError, match="cannot write records to"):
        answers(tmp_path / "none" / "records.jsonl", [1])


def test_records_without_a_head_are_gone_on_with_or_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    for anew, known in ((False, 0), (False, 1), (True, 0)):
        with Records(path, Answer, anew=anew) as records:
            assert len(records.found) == known
            records.add(Answer(known))
    assert path.read_text() == '{"type":"answer","value":0}\n'
