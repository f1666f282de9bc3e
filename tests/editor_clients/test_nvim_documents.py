"""Which document a buffer is for the language server, in a real Neovim."""

from tests.lsp.service import Daemon

from .neovim import Neovim


async def test_each_buffer_without_a_name_is_a_document_of_its_own(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.command("set filetype=python")
    await nvim.wait("Lacuna: ready")
    first = await nvim.lua("return vim.api.nvim_get_current_buf()")
    await nvim.keys("ione = ")
    await nvim.wait_ghost("filled")
    await nvim.keys("<Esc>")
    await nvim.command("new | set filetype=python")
    await nvim.keys("itwo = ")
    await nvim.wait_ghost("filled")
    await nvim.keys("<Tab>")
    await nvim.wait_lines("two = filled")
    await nvim.keys("<Esc>")
    await nvim.command("wincmd p")
    assert await nvim.lua("return vim.api.nvim_get_current_buf()") == first
    await nvim.keys("onew = ")
    await nvim.wait_ghost("filled")
    texts = [request["text"] for request in daemon.requests]
    assert (texts[0], texts[-1]) == ("one = \n", "one = \nnew = \n")
    assert "two = \n" in texts
    assert daemon.requests[-1]["language"] == "python"


RENAMES = (
    "file other.py",
    "saveas other.py",
    "lua vim.api.nvim_buf_set_name(0, 'other.py')",
    "silent lua vim.lsp.util.rename(vim.fn.expand('%:p'), vim.fn.expand('%:p:h') .. '/other.py')",
)


async def test_after_a_rename_suggestions_go_on(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "value = \n", keys="A")
    await nvim.wait_ghost("filled")
    text = "value = "
    for number, rename in enumerate(RENAMES):
        name = f"other{number}.py"
        await nvim.keys("<Esc>")
        for command in (rename.replace("other.py", name), "silent write!"):
            await nvim.command(command)
            await nvim.wait(name)
            await nvim.keys("Ax + ")
            await nvim.wait_ghost("filled")
            text += "x + "
            assert daemon.requests[-1]["path"].endswith(f"/{name}")
            assert daemon.requests[-1]["text"] == f"{text}\n"
            await nvim.keys("<Esc>")


async def test_a_buffer_that_gets_its_first_name_becomes_that_file(nvim: Neovim, daemon: Daemon) -> None:
    for command, name in (("write", "one.py"), ("file", "two.py")):
        await nvim.command("new | set filetype=python")
        await nvim.wait("Lacuna: ready")
        await nvim.keys("ione = ")
        await nvim.wait_ghost("filled")
        await nvim.keys("<Esc>")
        await nvim.command(f"{command} {name}")
        await nvim.wait(name)
        await nvim.keys("Atwo + ")
        await nvim.wait_ghost("filled")
        assert daemon.requests[-1]["path"].endswith(f"/{name}")
        assert daemon.requests[-1]["text"] == "one = two + \n"
        await nvim.keys("<Esc>")
