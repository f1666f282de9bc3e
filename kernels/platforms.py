"""The platforms that wheels, and what holds a wheel, are made for.

``python kernels/platforms.py`` prints their names; with ``--vscode`` those on which an editor's plugin can install the
wheel, each with VS Code's name for it: ``manylinux_2_28_x86_64:linux-x64``.
"""

import sys
from typing import NamedTuple


class Platform(NamedTuple):
    """What a compiler (Zig's) and VS Code call a platform, and whether its instruction sets are those of ARM.

    ``vscode`` is "" where torch cannot be installed.
    """

    zig: str
    vscode: str
    arm: bool


PLATFORMS = {
    "manylinux_2_28_x86_64": Platform("x86_64-linux-gnu.2.28", "linux-x64", arm=False),
    "manylinux_2_28_aarch64": Platform("aarch64-linux-gnu.2.28", "linux-arm64", arm=True),
    "win_amd64": Platform("x86_64-windows-gnu", "win32-x64", arm=False),
    "macosx_11_0_arm64": Platform("aarch64-macos.11.0", "darwin-arm64", arm=True),
    "macosx_11_0_x86_64": Platform("x86_64-macos.11.0", "", arm=False),
}

if __name__ == "__main__":
    if "--vscode" in sys.argv:
        print(*(f"{name}:{one.vscode}" for name, one in PLATFORMS.items() if one.vscode))
    else:
        print(*PLATFORMS)
