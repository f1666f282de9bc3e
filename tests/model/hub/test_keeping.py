"""Which optional files stay in the cache when another is written."""

import os
from pathlib import Path

import pytest

from lacuna_model.hub.keeping import keep


def written(folder: Path, sizes: list[int], **limits: int) -> list[str]:
    """Write files of these sizes, one after the other, and return the names of those that stay."""
    for number, size in enumerate(sizes):

        def write(file: Path, number: int = number, size: int = size) -> None:
            file.write_bytes(bytes(size))
            os.utime(file, (number, number))

        keep(folder / f"{number}.form", "*.form", write, **limits)
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        pytest.param([50, 1, 1, 1], "0123", id="small ones do not remove a large one"),
        pytest.param([1, 50, 60, 1], "23", id="older ones go where the later fill the space"),
        pytest.param([5, 50, 50, 1], "123", id="an older one goes where all do not fit"),
        pytest.param([200, 200, 200], "12", id="the latest stay whatever they take"),
    ],
)
def test_the_latest_files_stay_and_older_ones_that_fit(tmp_path: Path, sizes: list[int], kept: str) -> None:
    assert "".join(name[0] for name in written(tmp_path, sizes, most=2, most_bytes=105)) == kept
