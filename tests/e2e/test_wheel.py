"""The wheel that users install. It contains the tool, without our corpus, evaluations and benchmarks."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Runs the command from the unpacked wheel. The source tree, which is installed here, is removed from ``sys.path``.
RUN = """
import sys
sys.path = [sys.argv[1], *(path for path in sys.path if path not in sys.argv[2:6])]
from lacuna_server.__main__ import main
main(sys.argv[6:])
"""


def test_the_wheel_has_only_the_tool_which_runs_without_the_source_tree(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300, capture_output=True)
    (wheel,), unpacked = tmp_path.glob("*.whl"), tmp_path / "all"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    held = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*.py")}
    assert {"lacuna_model/engine.py", "lacuna_lsp/transport.py", "lacuna_server/__main__.py"} <= held
    packages = {"lacuna_cluster", "lacuna_kernels", "lacuna_lsp", "lacuna_model", "lacuna_server"}
    assert {name.partition("/")[0] for name in held} == packages

    sources = [str(ROOT / name) for name in ("server", "lsp", "model", "kernels")]
    started = [sys.executable, "-P", "-c", RUN, str(unpacked), *sources]
    assert subprocess.run([*started, "models", "list"], capture_output=True, timeout=120).returncode == 0
    ended = subprocess.run([*started, "bench", "passes"], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "lacuna: No such command 'bench'. (see: lacuna --help)\n"
