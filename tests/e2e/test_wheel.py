"""The wheel that users install. It contains the tool, without our corpus, evaluations and benchmarks."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Runs the command from the unpacked wheel. The source tree, which is installed here, is removed from ``sys.path``.
RUN = """
import sys
sys.path = [sys.argv[1], *(path for path in sys.path if path not in sys.argv[2:6])]
from lacuna_server.__main__ import main
main(sys.argv[6:])
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "all")
    return folder / "all"


def run(unpacked: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    sources = [str(ROOT / name) for name in ("server", "lsp", "model", "kernels")]
    command = [sys.executable, "-P", "-c", RUN, str(unpacked), *sources, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_wheel_contains_only_the_tool(unpacked: Path) -> None:
    held = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*.py")}
    assert {"lacuna_model/engine.py", "lacuna_lsp/transport.py", "lacuna_server/__main__.py"} <= held
    packages = {"lacuna_cluster", "lacuna_kernels", "lacuna_lsp", "lacuna_model", "lacuna_server"}
    assert {name.partition("/")[0] for name in held} == packages


def test_the_command_runs_without_the_source_tree(unpacked: Path) -> None:
    assert run(unpacked, "models", "list").returncode == 0
    ended = run(unpacked, "bench", "passes")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "lacuna: No such command 'bench'. (see: lacuna --help)\n"
