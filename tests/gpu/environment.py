"""Makes an environment on the machine with the GPU, in which isolated processes find what was carried there.

    python3 tests/gpu/environment.py FOLDER WHEEL...        prints the environment's Python; needs no package

The engine starts some helpers with ``python -I``, which reads neither PYTHONPATH nor the current folder. So the
environment has the wheels, the packages of the Python that runs this, and the source tree.
"""

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("model", "kernels", "server", "lsp", ".")
PIP = ("-q", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--upgrade")


def make(folder: Path, wheels: Sequence[Path], root: Path = ROOT) -> Path:
    """Make the environment in a folder; returns its Python. Raises CalledProcessError where a wheel does not fit."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    if wheels:
        command = [sys.executable, "-m", "pip", "install", *PIP, "--target", str(packages), *map(str, wheels)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    lines = [str(root / source) for source in SOURCES]
    # Other files of paths in that folder are followed, too.
    lines.append(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})")
    (packages / "lacuna.pth").write_text("\n".join(lines) + "\n")
    return folder / "bin" / "python"


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
