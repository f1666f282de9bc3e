"""Suggestions in a real Neovim, over a real ``lacuna-lsp`` and a scripted engine."""

from pathlib import Path

from tests.lsp.editor import until
from tests.lsp.service import Daemon
from tests.lsp.suggest.test_read_ahead import places
from tests.lsp.test_feedback import counted

from .neovim import AT_ONCE, Neovim, running

# All that is drawn has been there for a second; and nothing gets older.
LATER = "local now = vim.uv.now() + 1000; vim.uv.now = function() return now end"
FROZEN = "local now = vim.uv.now(); vim.uv.now = function() return now end"


async def frozen(nvim: Neovim, daemon: Daemon, text: str, keys: str) -> None:
    """Show a suggestion on the blank second line, in an instant that does not pass."""
    daemon.plan(fills=["return x"])
    await nvim.start("code.py", text, keys="")
    await nvim.lua(FROZEN)
    await nvim.keys(keys)
    await nvim.wait_ghost("return x")


async def test_tab_on_a_blank_line_indents_until_the_suggestion_was_seen(nvim: Neovim, daemon: Daemon) -> None:
    await frozen(nvim, daemon, "def f(x):\n    \n", "jA")
    await nvim.keys("<Tab>y<BS>")  # the Tab comes before the keys behind it
    await nvim.wait_lines("def f(x):", "        ")
    await nvim.wait_ghost("return x")
    await nvim.lua(LATER)
    await nvim.keys("<Tab>")
    await nvim.wait_lines("def f(x):", "        return x")


async def test_the_key_of_a_line_accepts_it_on_a_blank_line_at_once(nvim: Neovim, daemon: Daemon) -> None:
    await frozen(nvim, daemon, "def f(x):\n    \n", "jA")
    await nvim.keys("<M-l>")
    await nvim.wait_lines("def f(x):", "    return x")


async def test_a_suggestion_is_shown_and_accepted_with_one_key(nvim: Neovim, daemon: Daemon) -> None:
    before = counted(daemon)
    daemon.plan(fills=["if x:\n        return é\n    return y"])
    file = await nvim.start("code.py", "def f(x, y):\n    \n", keys="jA")
    await nvim.wait_ghost("if x:\n        return é\n    return y")
    assert nvim.screen.startswith("def f(x, y):\n    if x:\n        return é\n    return y\n~")
    assert await nvim.lines() == ["def f(x, y):", "    "]
    daemon.plan(fills=[""], status="no_valid_fill")
    await nvim.lua(LATER)
    await nvim.keys("<Tab>")
    await nvim.wait_lines("def f(x, y):", "    if x:", "        return é", "    return y")
    assert await nvim.request("nvim_win_get_cursor", 0) == [4, 12]
    assert await nvim.saved(file) == "def f(x, y):\n    if x:\n        return é\n    return y\n"
    await until(lambda: counted(daemon).get("accepted", 0) == before.get("accepted", 0) + 1)
    assert counted(daemon)["shown"] == before.get("shown", 0) + 1


async def test_the_engine_reads_ahead_at_the_cursor(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "one = 1\ntwo = 2\n", keys="j2l")
    await until(lambda: ("one = 1\ntw", "o = 2\n") in places(daemon))
    assert not daemon.requests


async def test_a_suggestion_shrinks_as_the_user_types_it(nvim: Neovim, daemon: Daemon) -> None:
    before = counted(daemon).get("shown", 0)
    daemon.plan(fills=["total(rows)"])
    await nvim.start("code.py", "value = \n", keys="A")
    for count in range(len("total(")):
        await nvim.wait_ghost("total(rows)"[count:])
        await nvim.keys("total(rows)"[count])
    await nvim.keys("<BS>")
    await nvim.wait_ghost("(rows)")
    assert len(daemon.requests) == 1
    assert counted(daemon)["shown"] == before + 1
    await nvim.keys("x")
    await until(lambda: len(daemon.requests) == 2)


async def test_words_and_lines_of_a_suggestion_are_accepted_one_by_one(nvim: Neovim, daemon: Daemon) -> None:
    before = counted(daemon)
    daemon.plan(fills=["first.second:\n    third\nfourth"])
    file = await nvim.start("code.py", "\n", keys="iif <M-\\>")
    await nvim.wait_ghost("first.second:\n    third\nfourth")
    await nvim.keys("<M-w>")
    await nvim.wait_ghost(".second:\n    third\nfourth")
    await nvim.keys("<M-l>")
    await nvim.wait_ghost("    third\nfourth")
    await nvim.keys("<M-l>")
    await until(lambda: nvim.ghost == "fourth")
    await nvim.keys("<M-w>")
    await nvim.wait_lines("if first.second:", "    third", "fourth")
    assert await nvim.saved(file) == "if first.second:\n    third\nfourth\n"
    await until(lambda: counted(daemon).get("accepted", 0) == before.get("accepted", 0) + 1)
    assert counted(daemon)["partly_accepted"] == before.get("partly_accepted", 0) + 3
    daemon.plan(fills=["é\u0301t.\u0915\u093f"])
    await nvim.keys("o<Space>")
    await nvim.wait_ghost("é\u0301t.\u0915\u093f")
    await nvim.keys("<M-w><M-w>")  # at once: the second one takes the next part
    await nvim.wait_lines("if first.second:", "    third", "fourth", " é\u0301t.")


async def test_a_dismissed_suggestion_is_not_made_again(nvim: Neovim, daemon: Daemon) -> None:
    before = counted(daemon).get("rejected", 0)
    daemon.plan(fills=["wrong()"])
    await nvim.start("code.py", "value = \n", keys="A")
    await nvim.wait_ghost("wrong()")
    await nvim.keys("<C-]>")
    await nvim.wait_ghost("")
    await until(lambda: counted(daemon).get("rejected", 0) == before + 1)
    await nvim.keys("<Esc>A")
    await nvim.keys("<Tab>")  # the key indents, because there is no suggestion to accept
    await nvim.wait_lines("value =     ")
    assert [request["text"] for request in daemon.requests].count("value = \n") == 1


async def test_several_suggestions_are_made_on_request_and_cycled_through(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["one()", "two()", "three()"])
    file = await nvim.start("code.py", "value = \n", keys="A")
    await nvim.wait_ghost("one()")
    await nvim.keys("<M-n>")  # while typing, only one suggestion was requested
    await nvim.wait_ghost("two()")
    await nvim.wait("value = two() 2/3")
    await nvim.keys("<M-n>")
    await nvim.wait("value = three() 3/3")
    await nvim.keys("<M-n>")
    await nvim.wait("value = one() 1/3")
    await nvim.keys("<M-p><M-p>")
    await nvim.wait("value = two() 2/3")
    await nvim.keys("t")  # two candidates begin with this letter, and the chosen one stays
    await nvim.wait("value = two() 1/2")
    await nvim.keys("<Tab>")
    await nvim.wait_lines("value = two()")
    assert await nvim.saved(file) == "value = two()\n"


async def test_no_ghost_text_is_shown_while_the_completion_menu_is_open(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["value_one"])
    await nvim.start("code.py", "value_two = 2\nx = \n", keys="jA")
    await nvim.wait_ghost("value_one")
    await nvim.lua("vim.fn.complete(5, { 'alpha', 'beta' })")
    await nvim.wait("beta")
    await nvim.wait_ghost("")
    await nvim.keys("<C-e>")
    await nvim.wait_ghost("value_one")
    for hidden, ghost in (("true", ""), ("false", "value_one")):  # as the recipes for other plugins' menus do
        await nvim.lua(f"require('lacuna').hide({hidden})")
        await nvim.wait_ghost(ghost)


async def test_keys_are_mapped_only_while_something_is_suggested(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "value = \n")
    await nvim.lua("vim.keymap.set('i', '<Tab>', function() return 'mine' end, { buffer = true, expr = true })")
    await nvim.keys("A")
    await nvim.wait_ghost("filled")
    await nvim.keys("<C-c>")  # it ends insert mode without InsertLeave
    await nvim.wait_ghost("")
    assert await nvim.lua("return vim.fn.maparg('<M-w>', 'i')") == ""
    await nvim.keys("A")
    await nvim.wait_ghost("filled")
    daemon.plan(fills=[""], status="no_valid_fill")
    await nvim.keys("<Tab>")
    await nvim.wait_lines("value = filled")
    await nvim.keys(";<Tab>")
    await nvim.wait("value = filled;mine")
    assert await nvim.lua("return vim.fn.maparg('<M-w>', 'i')") == ""


async def test_keys_can_be_changed_and_disabled(daemon: Daemon, tmp_path: Path) -> None:
    init = AT_ONCE + "vim.g.lacuna_keys = { accept = '<C-y>', ['accept-word'] = false }"
    async with running(daemon.environment, tmp_path, init) as nvim:
        await nvim.start("code.py", "value = \n", keys="A")
        await nvim.wait_ghost("filled")
        keys = "return vim.tbl_map(function(key) return vim.fn.maparg(key, 'i') end, { '<C-y>', '<M-w>', '<M-l>' })"
        assert await nvim.lua(keys) == ["<Plug>(lacuna-accept)", "", "<Plug>(lacuna-accept-line)"]
        await nvim.keys("<C-y>")
        await nvim.wait_lines("value = filled")


async def test_windows_line_ends_and_wide_characters_are_handled(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["wert('\N{GRINNING FACE}')\n\tzwei"])
    file = await nvim.start("code.py", "\r\nx = '\N{GRINNING FACE}' + \r\n", keys="jA")
    await nvim.keys("<M-\\>")
    await nvim.wait("x = '\N{GRINNING FACE}' + wert('\N{GRINNING FACE}')")
    await nvim.keys("<M-l>")
    await until(lambda: nvim.ghost.strip() == "zwei")
    await nvim.keys("<Tab>")
    await nvim.wait_lines("", "x = '\N{GRINNING FACE}' + wert('\N{GRINNING FACE}')", "\tzwei")
    await nvim.saved(file)
    assert file.read_bytes().decode() == ("\r\nx = '\N{GRINNING FACE}' + wert('\N{GRINNING FACE}')\r\n\tzwei\r\n")


async def test_keys_that_come_at_once_accept_what_is_left_of_a_suggestion_if_it_fits(
    nvim: Neovim, daemon: Daemon
) -> None:
    daemon.plan(fills=["total(rows)"])
    await nvim.start("code.py", "value = \n", keys="A")
    await nvim.wait_ghost("total(rows)")
    await nvim.keys("total(<Tab>")
    await nvim.wait_lines("value = total(rows)")
    await nvim.keys("<Esc>u")
    await nvim.wait_lines("value = total(")  # an undo keeps what was typed
    await nvim.keys("ggOcount = ")
    await nvim.wait_ghost("total(rows)")
    daemon.plan(status="no_valid_fill")
    await nvim.keys("x<Tab><M-w>y")
    await nvim.wait_lines("count = xy", "value = total(")


async def test_nothing_is_suggested_while_a_macro_is_recorded(nvim: Neovim) -> None:
    await nvim.start("code.py", "a\nb\n", keys="qqA<Tab>= ")
    await nvim.keys("<M-\\><Tab>1<Esc>qj@q")
    await nvim.wait_lines("a   =   1", "b   =   1")
    await nvim.keys("o")
    await nvim.wait_ghost("filled")


async def test_a_suggestion_is_not_accepted_before_a_bracket_that_another_plugin_has_closed(
    nvim: Neovim, daemon: Daemon
) -> None:
    await nvim.lua("vim.keymap.set('i', '(', '()<Left>')")
    daemon.plan(fills=["total(rows)"])
    await nvim.start("code.py", "value = \n", keys="A")
    await nvim.wait_ghost("total(rows)")
    await nvim.keys("total(<Tab>")
    await nvim.wait_lines("value = total()")
    await nvim.wait_ghost("rows")
    await nvim.keys("<Tab>")
    await nvim.wait_lines("value = total(rows)")


async def test_the_dot_repeats_what_was_accepted(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["first(…\t\n    second)"])
    file = await nvim.start("code.py", "\n\n", keys="iv = <M-\\>")
    await until(lambda: "second)" in nvim.ghost)
    daemon.plan(status="no_valid_fill")
    await nvim.keys("<Tab>;<Esc>")
    await nvim.wait_lines("v = first(…\t", "    second);", "")
    await nvim.keys("G.")
    await nvim.wait_lines("v = first(…\t", "    second);", "v = first(…\t", "    second);")
    await nvim.keys("u")
    await nvim.wait_lines("v = first(…\t", "    second);", "")
    assert await nvim.saved(file) == "v = first(…\t\n    second);\n\n"


# A language server that answers at once.
PAPERLS = """
local answers = {
  initialize = { capabilities = { signatureHelpProvider = {}, hoverProvider = true } },
  ['textDocument/signatureHelp'] = {
    signatures = { { label = 'glue(a)' }, { label = 'glue(a, b)' } },
    activeSignature = 1,
  },
  ['textDocument/hover'] = { contents = { kind = 'markdown', value = '```python\\n(function) glue\\n```\\nGlues.' } },
}
local function started()
  return {
    request = function(method, _, callback)
      callback(nil, answers[method] or vim.NIL)
      return true, 1
    end,
    notify = function() return true end,
    is_closing = function() return false end,
    terminate = function() end,
  }
end
vim.lsp.start({ name = 'paperls', cmd = started }, { bufnr = 0 })
"""


async def test_what_the_other_language_servers_say_is_read(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "\n", keys="")
    await nvim.lua(PAPERLS)
    await nvim.keys("isheet = glue(")
    await until(lambda: daemon.requests and len(daemon.requests[-1].get("signatures", ())) == 3)
    told = daemon.requests[-1]["signatures"]
    assert {one["text"] for one in told} == {"glue(a, b)\n", "glue(a)\n", "(function) glue\n"}
    assert {one["reason"] for one in told} == {"what paperls says of `glue`"}
