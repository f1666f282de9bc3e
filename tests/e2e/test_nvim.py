"""Neovim with the real model. The plugin's server starts the service itself, and the filled code is valid."""

import ast
from collections.abc import Mapping
from pathlib import Path

from tests.editor_clients.neovim import running

from .test_lsp import environment

__all__ = ["environment"]

TEXT = "from shapes import area_of_circle\n\n\ndef total(values):\n    return <<fill>>\n\n\nprint(area_of_circle())\n"


async def test_a_marker_is_filled_and_the_context_shown(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shapes.py").write_text("def area_of_circle(radius):\n    return 3.14 * radius**2\n")
    async with running(environment, tmp_path) as nvim:
        file = await nvim.start("main.py", TEXT)
        await nvim.command("Lacuna fill")
        await nvim.gone("<<fill>>")
        ast.parse(await nvim.saved(file))
        await nvim.keys("G$hh")
        await nvim.command("Lacuna context")
        await nvim.wait("return 3.14 * radius**2")
        await nvim.wait("─ Lacuna: read of other files ─")
