"""The loaders under AddressSanitizer, with files that contradict themselves."""

from pathlib import Path

import pytest
from tests.sanitizer import FOUND, fuzzed, sanitized

from lacuna_kernels import native

pytestmark = pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")

OUTSIDE = """
import pathlib, sys, torch
from lacuna_kernels import native
kernels = native.build(pathlib.Path(sys.argv[1]))
codes, packed = torch.ones((32, 32), dtype=torch.int8), torch.empty((32, 32), dtype=torch.uint8)
kernels._library.lacuna_pack(codes.data_ptr(), 64, 64, packed.data_ptr(), 1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the kernels, which are compiled once."""
    return tmp_path_factory.mktemp("sanitized")


def test_the_sanitizer_notices_a_read_outside_of_a_tensor(folder: Path) -> None:
    ended = sanitized(folder, "-c", OUTSIDE, str(folder / "cache" / "kernels"))
    assert ended.returncode == FOUND, ended.stderr[-2000:]
    assert "ERROR: AddressSanitizer: heap-" in ended.stderr


def test_files_that_contradict_themselves_are_refused_or_run(folder: Path) -> None:
    assert fuzzed(folder, "tests.model.fim.fuzz_loaders") <= {"refused", "ran", "not written"}
