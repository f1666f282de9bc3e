"""Adds to a wheel the plugin for Neovim and, for a platform, the compiled C kernels of every instruction set.

``LACUNA_PLATFORM`` names the platform; ``make wheels`` builds one wheel for each. Zig's compiler, a Python package,
builds them all on any machine. Without the variable the wheel is the same for all platforms and has no library.
"""

import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "LACUNA_PLATFORM"
PACKAGE = Path(__file__).with_name("lacuna_kernels")
NEOVIM = Path(__file__).parents[1] / "editor-clients/neovim"
SETS = runpy.run_path(str(PACKAGE / "compiling.py"))
# The platform of a wheel, the compiler's name for it, and its instruction sets.
PLATFORMS = {
    name: (one.zig, SETS["ARM" if one.arm else "X86"])
    for name, one in runpy.run_path(str(Path(__file__).with_name("platforms.py")))["PLATFORMS"].items()
}
# Zig names processors in its own way.
ZIG_FLAGS = {"NEON": ("-mcpu=generic+dotprod",)}


def compile_for(target: str, instructions: Any, library: Path) -> None:
    """Compile the kernels for a system by zig's name and instructions; raises CalledProcessError."""
    units = [str(file) for file in SETS["SOURCES"] if file.suffix == ".c"]
    flags = (*SETS["FLAGS"], "-s", *ZIG_FLAGS.get(instructions.name, instructions.flags))
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *flags, *units, "-o", str(library)]
    subprocess.run(command, check=True)


class Additions(BuildHookInterface[Any]):
    """Adds them, and says which platform the wheel is for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to the wheel. Raises ValueError for a platform that is not known."""
        if version == "editable":
            return
        for folder in ("doc", "lsp", "lua", "plugin"):
            build_data["force_include"][str(NEOVIM / folder)] = f"lacuna_server/neovim/{folder}"
        platform = os.environ.get(VARIABLE)
        if platform is None:
            return
        if platform not in PLATFORMS:
            raise ValueError(f"{VARIABLE}={platform}: known are {', '.join(PLATFORMS)}")
        target, sets = PLATFORMS[platform]
        self._folder = tempfile.TemporaryDirectory(prefix="lacuna-")
        for instructions in sets:
            library = Path(self._folder.name, instructions.built.name)
            compile_for(target, instructions, library)
            build_data["force_include"][str(library)] = f"{PACKAGE.name}/built/{library.name}"
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the compiled files; the wheel has them."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
