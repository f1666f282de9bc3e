import asyncio
import time
from pathlib import Path

from lacuna_lsp.client.workspaces import BUDGET, ClientWorkspaces
from lacuna_model.core.params import Snippet
from lacuna_model.snippets.format import PieceCounter

SHOP = "def open_account(owner, opening):\n    return Account(owner)\n"
MAIN = "from shop import open_account\n\nmine = open_account("
WAIT_S = 60


async def choose(workspaces: ClientWorkspaces, folder: Path, wanted: str) -> tuple[Snippet, ...]:
    """The snippets for the end of a document, as soon as a text is among them."""
    deadline = time.monotonic() + WAIT_S
    while True:
        chosen = await workspaces.choose(str(folder), str(folder / "main.py"), "python", MAIN, len(MAIN), ())
        if any(wanted in one.text for one in chosen):
            return chosen
        assert time.monotonic() < deadline, chosen
        await asyncio.sleep(0.02)


async def test_files_on_disk_are_chosen_within_the_budget(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / ".env").write_text("open_account = 1\n")
    workspaces = ClientWorkspaces()
    workspaces.begin(str(tmp_path))
    chosen = await choose(workspaces, tmp_path, SHOP)
    assert {one.path for one in chosen} == {"shop.py"}
    assert sum(len(PieceCounter().encode(one.text)) for one in chosen) <= BUDGET

    workspaces.close()
