"""Next edits in a real Neovim, over a real ``lacuna-lsp`` and a scripted engine."""

import asyncio
from pathlib import Path

import pytest
from tests.lsp.service import Daemon

from .neovim import AT_ONCE, Neovim, running

FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(5))
RENAMED = f"import old_name\n{FILLER}keep(old_name, 1)\n{FILLER}show(old_name)\n"


def count(nvim: Neovim, text: str) -> int:
    return nvim.screen.count(text)


async def test_one_place_is_marked_and_tab_goes_there_and_makes_the_edit(nvim: Neovim) -> None:
    """zed#27480: nothing but a short hint is drawn before the cursor is at the place."""
    file = await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
    await nvim.wait("keep(old_name, 1) ⇥ next edit")
    assert nvim.ghost == ""  # collapsed until the cursor is there
    assert count(nvim, "⇥ next edit") == 1
    await nvim.keys("<Tab>")
    await nvim.wait_ghost("keep(new_name, 1)")
    assert nvim.drawn("LacunaMark") == "keep(old_name, 1)"
    await nvim.keys("<Tab>")
    await nvim.wait("show(old_name) ⇥ next edit")
    await nvim.keys("<Tab><Tab>")
    await nvim.gone("old_name")
    assert await nvim.saved(file) == RENAMED.replace("old_name", "new_name")
    assert await nvim.lua("return vim.fn.maparg('<Tab>', 'n') .. vim.fn.maparg('<Esc>', 'n')") == ""


async def test_a_dismissed_edit_does_not_come_back(nvim: Neovim) -> None:
    """vscode#256291."""
    await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
    await nvim.wait("⇥ next edit")
    await nvim.keys("<Esc>")
    await nvim.gone("⇥ next edit")
    await nvim.lua("require('lacuna.next_edit').request()")
    await asyncio.sleep(1)
    assert not nvim.shows("⇥ next edit")
    assert (await nvim.lines())[6] == "keep(old_name, 1)"


OWN = "vim.keymap.set('n', '<Tab>', 'Goown<Esc>', { buffer = %s })"
OF_THE_BUFFER = "vim.api.nvim_create_autocmd('FileType', { callback = function() %s end })"


@pytest.mark.parametrize("own", [OWN % "nil", OF_THE_BUFFER % OWN % "true"], ids=["of all buffers", "of one buffer"])
async def test_a_key_of_the_users_keeps_its_meaning(daemon: Daemon, tmp_path: Path, own: str) -> None:
    """vscode#252432: no key is taken that something else wants."""
    async with running(daemon.environment, tmp_path, f"{AT_ONCE}\n{own}") as nvim:
        await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
        await nvim.wait("⇥ next edit")
        await nvim.keys("<Tab>")
        await nvim.wait("own")
        assert (await nvim.lines())[6] == "keep(old_name, 1)"


async def test_a_key_that_the_user_has_mapped_to_the_action_stays_mapped(daemon: Daemon, tmp_path: Path) -> None:
    own = f"{AT_ONCE}\nvim.keymap.set('n', '<Tab>', '<Plug>(lacuna-next-edit)')"
    async with running(daemon.environment, tmp_path, own) as nvim:
        await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
        await nvim.wait("keep(old_name, 1) ⇥ next edit")
        await nvim.keys("<Tab><Tab>")
        await nvim.wait("show(old_name) ⇥ next edit")
        await nvim.keys("<Tab><Tab>")
        await nvim.gone("old_name")
        assert await nvim.lua("return vim.fn.maparg('<Tab>', 'n')") == "<Plug>(lacuna-next-edit)"
        assert await nvim.lua("return vim.v.errmsg") == ""


COUNTED = """
local next_edit, asked = require('lacuna.next_edit'), 0
local request = next_edit.request
function next_edit.request()
  asked = asked + 1
  request()
end
function _G.asked()
  return asked
end
"""


async def test_what_the_user_has_undone_is_not_asked_for_again(nvim: Neovim) -> None:
    await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
    await nvim.wait("keep(old_name, 1) ⇥ next edit")
    await nvim.lua(COUNTED)
    await nvim.keys("<Tab><Tab>")
    await nvim.wait("show(old_name) ⇥ next edit")
    await asyncio.sleep(1)
    assert await nvim.lua("return _G.asked()") == 1  # at once, and not again after a pause
    await nvim.keys("u")
    await nvim.gone("⇥ next edit")
    await asyncio.sleep(1)
    assert await nvim.lua("return _G.asked()") == 1
    assert (await nvim.lines())[6] == "keep(old_name, 1)"
    assert not nvim.shows("⇥ next edit")


async def test_a_snippet_keeps_its_key(nvim: Neovim, daemon: Daemon) -> None:
    """vscode#257351: in a snippet, Tab goes to the next placeholder, although a next edit was offered."""
    daemon.plan(fills=[""], status="no_valid_fill")
    await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
    await nvim.wait("⇥ next edit")
    await nvim.keys("A")
    await nvim.lua("vim.snippet.expand(' # $1 and $2')")
    await nvim.keys("one<Tab>two")
    await nvim.wait("import new_name # one and two")
    assert (await nvim.lines())[6] == "keep(old_name, 1)"


async def test_lines_are_appended_at_the_end_of_a_file(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["width = 1\nheight = 2\n"], log_prob=-0.1)
    file = await nvim.start("code.py", "import old_name\nwidth = 1\n", keys="wcwnew_name<Esc>")
    await nvim.wait("width = 1 ⇥ next edit")
    await nvim.keys("<Tab>")
    await nvim.wait_ghost("height = 2")
    await nvim.keys("<Tab>")
    await nvim.wait_lines("import new_name", "width = 1", "height = 2")
    assert await nvim.saved(file) == "import new_name\nwidth = 1\nheight = 2\n"
