"""Several gaps, a regenerated selection and edits of many places in a real Neovim."""

from pathlib import Path

from tests.lsp.editor import until
from tests.lsp.service import Daemon

from .neovim import Neovim

# Says when the server's edits have come, on which a preview opens at once or waits.
APPLIES = """
local handlers = vim.lsp.get_clients({ name = 'lacuna' })[1].handlers
local apply = handlers['workspace/applyEdit']
handlers['workspace/applyEdit'] = function(...)
  _G.applying = true
  return apply(...)
end
"""


async def test_a_block_selection_is_a_gap_in_each_of_its_lines(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=[["1", "2", "3"]])
    file = await nvim.start("code.py", "a = éé\nbb = xx\nc = zz\n", keys="4|<C-v>jj$")
    await nvim.command("Lacuna fill")
    await nvim.wait("a =1")
    assert await nvim.saved(file) == "a =1\nbb 2\nc =3\n"
    (request,) = daemon.requests
    assert [(r["start"], r["end"]) for r in request["regions"]] == [(3, 8), (12, 16), (20, 23)]


async def test_a_selection_is_replaced_by_a_chosen_alternative(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["old", "new", "newer(\n)"])
    file = await nvim.start("code.py", "a = old + 1\n", keys="wwve")
    await nvim.command("Lacuna regenerate")
    await nvim.wait("2: newer( ⏎ )")
    await nvim.keys("2<CR>")
    await nvim.wait("a = newer(\n) + 1")
    assert await nvim.saved(file) == "a = newer(\n) + 1\n"
    (request,) = daemon.requests
    assert (request["regions"][0]["start"], request["regions"][0]["end"]) == (4, 7)


async def test_lines_are_edited_by_an_instruction_after_a_preview(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["b = 20\n"])
    file = await nvim.start("code.py", "a = 1\nb = 2\nc = 3\n", keys="jV")
    await nvim.command("Lacuna edit")
    await nvim.wait("Change these lines:")
    await nvim.keys("ten times<CR>")
    await nvim.wait("+b = 20")
    assert nvim.shows("-b = 2")
    await nvim.command("w")
    await nvim.wait("Lacuna: 1 change made")
    assert await nvim.saved(file) == "a = 1\nb = 20\nc = 3\n"
    (region,) = daemon.requests[0]["regions"]
    assert (region["start"], region["end"]) == (6, 12)
    assert daemon.requests[0]["task"] == {"type": "edit", "instruction": "ten times"}


async def refactor(nvim: Neovim, template: str) -> None:
    await nvim.command("Lacuna refactor")
    await nvim.wait("Rewrite places like:")
    await nvim.keys("get($A)<CR>")
    await nvim.wait("to (the model fills <<fill>>):")
    await nvim.keys(f"{template}<CR>")


async def test_a_refactor_is_previewed_and_changes_can_be_left_out(nvim: Neovim, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    other = tmp_path / "other.py"
    other.write_text("def f():\n    get(c)\n")
    file = await nvim.start("code.py", "get(a)\n\n\nget(b)\n")
    await refactor(nvim, "get($A, 1)")
    await nvim.wait("+    get(c, 1)")
    assert nvim.shows("+get(a, 1)")
    assert other.read_text() == "def f():\n    get(c)\n"
    await nvim.keys("/@@<CR>ndduggndd")  # delete the second hunk, undo this, and delete the first hunk
    await nvim.command("w")
    await nvim.wait("Lacuna: 2 changes made")
    assert not nvim.shows("@@")
    await nvim.request("nvim_command", "wall")
    assert file.read_text() == "get(a)\n\n\nget(b, 1)\n"
    assert other.read_text() == "def f():\n    get(c, 1)\n"


async def refactor_folder(nvim: Neovim, folder: Path) -> tuple[Path, Path]:
    """Ask for a refactor of a folder with one open file and one other; return both."""
    (folder / ".git").mkdir()
    other = folder / "other.py"
    other.write_text("def f():\n    get(c)\n")
    file = await nvim.start("code.py", "get(a)\n")
    await refactor(nvim, "get($A, 1)")
    return file, other


async def test_a_file_that_was_not_open_is_not_edited_once_it_has_changed(nvim: Neovim, tmp_path: Path) -> None:
    file, other = await refactor_folder(nvim, tmp_path)
    await nvim.wait("+    get(c, 1)")
    await nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('other.py'), 0, 0, true, { 'import a' })")
    await nvim.command("w")
    await nvim.told("nothing was edited, ")
    assert "other.py has changed meanwhile" in await nvim.lua("return vim.fn.execute('messages')")
    await nvim.request("nvim_command", "wall")
    assert file.read_text() == "get(a)\n"
    assert other.read_text() == "import a\ndef f():\n    get(c)\n"


async def test_a_file_is_not_edited_where_another_client_has_unsaved_changes_of_it(
    nvim: Neovim, tmp_path: Path
) -> None:
    await nvim.lua("vim.fn.bufload(vim.fn.bufadd('other.py'))")
    await nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('other.py'), 0, -1, true, { 'import a' })")
    file, other = await refactor_folder(nvim, tmp_path)
    await nvim.told("nothing was edited, ")
    assert "other.py has unsaved changes" in await nvim.lua("return vim.fn.execute('messages')")
    assert not nvim.shows("@@")
    assert file.read_text() == "get(a)\n"
    assert other.read_text() == "def f():\n    get(c)\n"


async def test_a_preview_waits_while_the_user_types_in_another_file(
    nvim: Neovim, daemon: Daemon, tmp_path: Path
) -> None:
    """``:w`` for that file is no decision about the changes."""
    daemon.plan(fills=["1", "1"], steps=100, pause=0.02)
    (tmp_path / ".git").mkdir()
    third = tmp_path / "third.py"
    third.write_text("abc\n")
    file = await nvim.start("code.py", "get(a)\nget(b)\n")
    await nvim.lua(APPLIES)
    await refactor(nvim, "get($A, <lt><lt>fill>>)")
    await nvim.command("edit third.py")
    await nvim.keys("A")
    assert await nvim.lua("return vim.wait(30000, function() return _G.applying end)")
    await nvim.keys("def<Esc>:w<CR>")
    await until(lambda: third.read_text() == "abcdef\n")
    await nvim.wait("+get(b, 1)")
    assert file.read_text() == "get(a)\nget(b)\n"
    await nvim.command("w")
    await nvim.told("Lacuna: 2 changes made")
    assert await nvim.saved(file) == "get(a, 1)\nget(b, 1)\n"


async def test_a_recipe_is_chosen_from_a_list_and_asks_for_its_settings(nvim: Neovim) -> None:
    file = await nvim.start("code.py", "def f(a):\n    return a\n\n\nf(1)\nprint(2)\n")
    await nvim.command("%Lacuna recipes")
    await nvim.wait("logging: replace print calls by logging calls (1 here)")
    await nvim.wait("parameter: add a parameter to a function and pass it from its callers")
    screen = nvim.screen.splitlines()
    (number,) = (line.split(":")[0].strip() for line in screen if "parameter: add" in line)
    await nvim.keys(f"{number}<CR>")
    for name, value in (("function", "f"), ("parameter", "b: int"), ("value", "2")):
        await nvim.wait(f"{name} (")
        await nvim.keys(f"{value}<CR>")
    await nvim.wait("+f(1, b=2)")
    await nvim.command("w")
    await nvim.gone("@@")
    assert await nvim.saved(file) == "def f(a, b: int):\n    return a\n\n\nf(1, b=2)\nprint(2)\n"
