from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.tasks.records import Records

from lacuna_model.core.errors import RequestError


class Asked(msgspec.Struct, tag="asked"):
    seed: int


class Answer(msgspec.Struct, tag="answer"):
    value: int


def kept(path: Path | None, seed: int = 0) -> Records[Answer]:
    return Records(path, Asked(seed), msgspec.json.Decoder(Answer))


def test_written_records_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    for round_ in range(3):
        with kept(path) as records:
            assert records.found == [Answer(value) for value in range(round_)]
            records.add(Answer(round_))
    assert len(path.read_bytes().splitlines()) == 4


def test_a_line_that_was_cut_off_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with kept(path) as records:
        records.add(Answer(1))
        records.add(Answer(2))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with kept(path) as records:
            for value in range(len(records.found) + 1, 3):
                records.add(Answer(value))
        assert path.read_bytes() == whole


def test_records_of_another_evaluation_are_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with kept(path) as records:
        records.add(Answer(1))
    before = path.read_bytes()
    with pytest.raises(RequestError, match=r"records\.jsonl: records of another evaluation"):
        kept(path, seed=1)
    path.write_bytes(before + b'{"type": "answer"}\n')
    with pytest.raises(RequestError, match=r"records\.jsonl: damaged records"):
        kept(path)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot write records to"):
        kept(tmp_path / "none" / "records.jsonl")
    with kept(None) as records:
        records.add(Answer(1))
    assert not records.found
