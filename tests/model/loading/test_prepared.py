"""Prepared weights are read where the system caches their file."""

from pathlib import Path

from lacuna_model.loading.prepared import mapped


def test_a_files_bytes_are_where_it_is_cached_and_writing_to_them_does_not_change_it(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"weights of a model")
    found = mapped(path)
    assert found.numpy().tobytes() == b"weights of a model"
    found[0] = 0
    assert path.read_bytes() == b"weights of a model"
