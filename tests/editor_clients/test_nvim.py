"""The plugin in a real Neovim, over a real ``lacuna-lsp`` and a scripted engine."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from tests.lsp.editor import until
from tests.lsp.service import Daemon
from tests.lsp.suggest.test_read_ahead import places
from tests.lsp.test_feedback import counted

from lacuna_server.wire.settings import Settings

from .neovim import BIN, PLUGIN, Neovim, running

AT_ONCE = "vim.lsp.config('lacuna', { settings = { lacuna = { debounce = false } } })"


@pytest_asyncio.fixture
async def nvim(daemon: Daemon, tmp_path: Path) -> AsyncIterator[Neovim]:
    before = daemon.sessions
    async with running(daemon.environment, tmp_path, AT_ONCE) as nvim:
        yield nvim
    await until(lambda: daemon.sessions <= before)  # the last requests must not count for the next test


# --- next edits


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


async def test_a_key_of_the_users_keeps_its_meaning(daemon: Daemon, tmp_path: Path) -> None:
    """vscode#252432: no key is taken that something else wants."""
    own = f"{AT_ONCE}\nvim.keymap.set('n', '<Tab>', 'Goown<Esc>')"
    async with running(daemon.environment, tmp_path, own) as nvim:
        await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
        await nvim.wait("⇥ next edit")
        await nvim.keys("<Tab>")
        await nvim.wait("own")
        assert (await nvim.lines())[6] == "keep(old_name, 1)"


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


async def test_an_edit_is_shown_although_the_cursor_moves_before_the_answer(nvim: Neovim) -> None:
    """continue#8661: what is answered is shown."""
    await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>jj")
    await nvim.wait("⇥ next edit")


async def test_undoing_a_change_offers_no_edit_back(nvim: Neovim) -> None:
    """vscode-copilot-release#8763: what was accepted is not offered to be undone."""
    await nvim.start("code.py", RENAMED, keys="wcwnew_name<Esc>")
    await nvim.wait("⇥ next edit")
    await nvim.keys("<Tab><Tab>")
    await nvim.wait("show(old_name) ⇥ next edit")
    await nvim.keys("ggwcwold_name<Esc>")
    await nvim.gone("⇥ next edit")
    await asyncio.sleep(1)
    assert "keep(new_name, 1)" in await nvim.lines()
    assert not nvim.shows("⇥ next edit")


# --- suggestions


async def test_a_suggestion_is_shown_and_accepted_with_one_key(nvim: Neovim, daemon: Daemon) -> None:
    before = counted(daemon)
    daemon.plan(fills=["if x:\n        return é\n    return y"])
    file = await nvim.start("code.py", "def f(x, y):\n    \n", keys="jA")
    await nvim.wait_ghost("if x:\n        return é\n    return y")
    assert nvim.screen.startswith("def f(x, y):\n    if x:\n        return é\n    return y\n~")
    assert await nvim.lines() == ["def f(x, y):", "    "]
    daemon.plan(fills=[""], status="no_valid_fill")
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


async def test_undoing_a_suggestion_keeps_the_typed_text(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["one(two)"])
    await nvim.start("code.py", "\n", keys="ivalue = ")
    await nvim.wait_ghost("one(two)")
    await nvim.keys("<Tab><Esc>")
    await nvim.wait("value = one(two)")
    await nvim.keys("u")
    await nvim.gone("one")
    assert await nvim.lines() == ["value = "]


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


async def test_a_line_break_that_removes_indentation_causes_no_error(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "def f():\n", keys="ox = 1<CR>")
    await nvim.wait_ghost("filled")
    await nvim.keys("<CR>")
    await nvim.wait_lines("def f():", "    x = 1", "", "    ")
    assert await nvim.lua("return vim.v.errmsg") == ""


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


async def test_a_message_is_shown_if_a_request_gets_no_suggestion(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=[""], status="no_valid_fill")
    await nvim.start("code.py", "value = \n", keys="A<M-\\>")
    await nvim.wait("nothing to suggest here (Lacuna: ready)")
    await nvim.keys("<Space>")
    await nvim.gone("nothing")


async def test_no_ghost_text_is_shown_while_the_completion_menu_is_open(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["value_one"])
    await nvim.start("code.py", "value_two = 2\nx = \n", keys="jA")
    await nvim.wait_ghost("value_one")
    await nvim.lua("vim.fn.complete(5, { 'alpha', 'beta' })")
    await nvim.wait("beta")
    await nvim.wait_ghost("")
    await nvim.keys("<C-e>")
    await nvim.wait_ghost("value_one")


async def test_keys_are_mapped_only_while_something_is_suggested(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "value = \n")
    await nvim.lua("vim.keymap.set('i', '<Tab>', function() return 'mine' end, { buffer = true, expr = true })")
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


# --- several gaps, a regenerated selection, edits of many places


async def test_markers_are_filled_together(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=[["one", "two"]])
    file = await nvim.start("code.py", "a = <<fill>>\nb = f(<<fill>>)\n")
    await nvim.command("Lacuna fill")
    await nvim.wait("b = f(two)")
    await nvim.wait("Lacuna: 2 changes made")
    assert await nvim.saved(file) == "a = one\nb = f(two)\n"
    assert len(daemon.requests) == 1


async def test_a_block_selection_is_a_gap_in_each_of_its_lines(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=[["1", "2", "3"]])
    file = await nvim.start("code.py", "a = éé\nbb = xx\nc = zz\n", keys="4|<C-v>jj$")
    await nvim.command("Lacuna fill")
    await nvim.wait("a =1")
    assert await nvim.saved(file) == "a =1\nbb 2\nc =3\n"
    (request,) = daemon.requests
    assert [(r["start"], r["end"]) for r in request["regions"]] == [(3, 8), (12, 16), (20, 23)]


async def test_marked_places_are_filled_together(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=[["one", "two"]])
    file = await nvim.start("code.py", "a = \nb = f(ü, old)\n", keys="A")
    await nvim.lua("vim.keymap.set({ 'n', 'i', 'x' }, '<F5>', '<Plug>(lacuna-mark)')")
    await nvim.keys("<F5><Esc>j0fovfd<F5>")
    await nvim.wait("a = …")
    assert nvim.drawn("LacunaMark") == "…\nold"
    await nvim.command("Lacuna fill")
    await nvim.wait("b = f(ü, two)")
    await until(lambda: nvim.drawn("LacunaMark") == "")
    assert await nvim.saved(file) == "a = one\nb = f(ü, two)\n"


async def test_empty_bodies_in_a_range_of_lines_are_filled(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(fills=["return 1"])
    file = await nvim.start("code.py", "def f():\n    ...\n\n\ndef g():\n    ...\n")
    await nvim.command("1,2Lacuna fill bodies")
    await nvim.wait("return 1")
    assert await nvim.saved(file) == "def f():\n    return 1\n\n\ndef g():\n    ...\n"


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
    assert (region["start"], region["end"], region["instruction"]) == (6, 12, "ten times")


async def test_a_refactor_is_previewed_and_changes_can_be_left_out(nvim: Neovim, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    other = tmp_path / "other.py"
    other.write_text("def f():\n    get(c)\n")
    file = await nvim.start("code.py", "get(a)\n\n\nget(b)\n")
    await nvim.command("Lacuna refactor")
    await nvim.wait("Rewrite places like:")
    await nvim.keys("get($A)<CR>")
    await nvim.wait("to (the model fills <<fill>>):")
    await nvim.keys("get($A, 1)<CR>")
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


async def test_a_declined_refactor_shows_no_message(nvim: Neovim) -> None:
    file = await nvim.start("code.py", "print('a')\n")
    await nvim.command("%Lacuna refactor logging")
    await nvim.wait("@@")
    await nvim.command("q!")
    await nvim.gone("@@")
    await nvim.command("messages clear")
    await nvim.command("Lacuna status")  # a message of the refactor would arrive before the answer to this
    await nvim.wait("held back as unsure")
    assert await nvim.lua("return vim.fn.execute('messages')") == ""
    assert await nvim.saved(file) == "print('a')\n"


async def test_a_recipe_takes_its_settings_by_name(nvim: Neovim) -> None:
    file = await nvim.start("code.py", "def f(a):\n    return a\n\n\nf(1)\n")
    await nvim.command("%Lacuna refactor parameter function=f parameter=b:\\ int value=2")
    await nvim.wait("+f(1, b=2)")
    await nvim.command("w")
    await nvim.gone("@@")
    assert await nvim.saved(file) == "def f(a, b: int):\n    return a\n\n\nf(1, b=2)\n"
    await nvim.command("%Lacuna refactor parameter nonsense")
    await nvim.wait("nonsense is no setting of a recipe: write name=value")


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


async def test_edits_of_a_text_that_has_changed_are_not_applied(nvim: Neovim) -> None:
    file = await nvim.start("code.py", "get(a)\nget(b)\n")
    await nvim.lua(
        "require('lacuna.server').execute('refactor', { pattern = 'get($A)', template = 'put($A)',"
        " textDocument = { uri = vim.uri_from_bufnr(0) } }, function() end)"
    )
    await nvim.wait("@@")
    await nvim.keys("gtOx<Esc>gt")
    await nvim.command("w")
    await nvim.wait("nothing was edited, code.py has changed …")
    assert await nvim.saved(file) == "x\nget(a)\nget(b)\n"


async def test_a_change_is_propagated_to_similar_places(nvim: Neovim) -> None:
    file = await nvim.start("code.py", "get(a)\nget(b)\n", keys="f)i, 1<Esc>")
    await nvim.command("Lacuna propagate file")
    await nvim.wait("+get(b, 1)")
    await nvim.command("wq")
    await nvim.gone("@@")
    assert await nvim.saved(file) == "get(a, 1)\nget(b, 1)\n"


async def test_a_code_action_fills_a_marker(nvim: Neovim, daemon: Daemon) -> None:
    file = await nvim.start("code.py", "a = <<fill>>\n")
    await nvim.keys("gra")
    await nvim.wait("1: Fill 1 <<fill>> marker")
    await nvim.keys("1<CR>")
    await nvim.wait("a = filled")
    assert await nvim.saved(file) == "a = filled\n"


# --- the server


async def test_a_message_wider_than_the_screen_does_not_wait_for_a_key(nvim: Neovim) -> None:
    name = "code-" + 60 * "x" + ".py"
    file = await nvim.start(name, "a = <<fill>>\n")
    await nvim.command("set nomodifiable")
    await nvim.command("Lacuna fill")
    await nvim.wait("Lacuna: Fill 1 place: nothing was edited, code-xxx")
    await nvim.wait("…")
    assert await nvim.request("nvim_get_mode") == {"mode": "n", "blocking": False}
    assert f"{name} is not modifiable" in await nvim.lua("return vim.fn.execute('messages')")
    assert await nvim.saved(file) == "a = <<fill>>\n"


async def test_a_missing_server_is_reported_once_with_the_remedy(daemon: Daemon, tmp_path: Path) -> None:
    async with running(daemon.environment, tmp_path, "vim.lsp.config('lacuna', { cmd = { 'not-there' } })") as nvim:
        (tmp_path / "code.py").write_text("value = \n")
        await nvim.command("edit code.py")
        await nvim.wait("Lacuna: not-there is not found, see :checkhealth lacuna")
        await nvim.keys("Aabc<Esc>")
        await nvim.command("messages clear")
        await nvim.command("edit other.py")
        await nvim.keys("iabc<Esc>")
        assert await nvim.lua("return vim.fn.execute('messages')") == ""
        await nvim.command("checkhealth lacuna")
        await nvim.wait("ERROR not-there is not found")


async def test_an_unreachable_engine_is_reported_once(daemon: Daemon, tmp_path: Path) -> None:
    init = AT_ONCE + "vim.lsp.config('lacuna', { cmd = { 'lacuna-lsp', '--engine', 'http://127.0.0.1:9' } })"
    async with running(daemon.environment, tmp_path, init) as nvim:
        (tmp_path / "code.py").write_text("value = <<fill>>\n")
        await nvim.command("edit code.py")
        await nvim.wait("Lacuna: No engine: http://127.0.0.1:9 does not answer")
        await nvim.wait("Lacuna: unreachable")
        await nvim.command("messages clear")
        await nvim.keys("Aabc")
        await nvim.wait("fill>>abc")
        await nvim.keys("<Esc>")
        assert await nvim.lua("return vim.fn.execute('messages')") == ""
        await nvim.command("Lacuna fill")
        await nvim.wait("Lacuna: no engine yet: http://127.0.0.1:9 does not answer")
        await nvim.command("Lacuna status")
        await nvim.wait("start the engine with")
        await until(lambda: "Lacuna: unreachable, http://127.0.0.1:9 does not answer" in nvim.drawn("LacunaError"))
        assert nvim.drawn("LacunaError").endswith("Lacuna: unreachable")  # in the status line
        await nvim.command("checkhealth lacuna")
        await nvim.wait("ERROR running in")
        await nvim.wait("start the engine with")


async def test_a_failed_engine_is_reported_once(own_daemon: Daemon, tmp_path: Path) -> None:
    own_daemon.kill()
    own_daemon.plan(damaged=True)
    own_daemon.start()
    async with running(own_daemon.environment, tmp_path, AT_ONCE) as nvim:
        (tmp_path / "code.py").write_text("value = \n")
        await nvim.command("edit code.py")
        await nvim.told("Lacuna: No engine: the weights are damaged")
        await nvim.wait("Lacuna: failed")
        await nvim.keys("Aabc")
        await nvim.wait("value = abc")
        assert (await nvim.lua("return vim.fn.execute('messages')")).count("Lacuna") == 1


async def test_the_statusline_shows_the_state_while_the_model_loads(own_daemon: Daemon, tmp_path: Path) -> None:
    own_daemon.kill()
    own_daemon.plan(hold=True)
    own_daemon.start()
    # With an explicit address, the server does not start another engine when this one ends.
    engine = f"vim.lsp.config('lacuna', {{ cmd = {{ 'lacuna-lsp', '--engine', '{own_daemon.running.url}' }} }})"
    async with running(own_daemon.environment, tmp_path, AT_ONCE + engine) as nvim:
        (tmp_path / "code.py").write_text("value = \n")
        await nvim.command("edit code.py")
        await nvim.wait("Lacuna: half of it is there 50%")
        await nvim.keys("A<M-\\>")
        await nvim.wait("nothing to suggest here (Lacuna: half of it is there 50%)")
        own_daemon.plan()
        await nvim.wait("Lacuna: ready")
        await nvim.wait_ghost("filled")  # the user presses no other key
        own_daemon.kill()
        await nvim.wait("Lacuna: lost")
        await nvim.keys("<Esc>")  # Neovim shows the message after insert mode
        await nvim.wait("The connection to the engine broke; it is tried again (1).")


async def test_the_restart_command_starts_the_server_again(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "value = \n")
    first = await nvim.lua("return vim.lsp.get_clients()[1].id")
    await nvim.command("Lacuna restart")
    gone = f"function() return not vim.lsp.get_client_by_id({first}) end"
    assert await nvim.lua(f"return vim.wait(30000, {gone})")
    await nvim.wait("Lacuna: ready")
    await nvim.keys("A")
    await nvim.wait_ghost("filled")
    assert await nvim.lua("return #vim.lsp.get_clients()") == 1


async def test_settings_reach_the_server_and_unknown_ones_are_reported(daemon: Daemon, tmp_path: Path) -> None:
    settings = "{ lacuna = { debounce = false, maxTokens = 7, typo = 1 } }"
    async with running(daemon.environment, tmp_path, f"vim.lsp.config('lacuna', {{ settings = {settings} }})") as nvim:
        await nvim.start("code.py", "value = \n")
        await nvim.wait("Lacuna: unknown setting lacuna.typo")
        await nvim.keys("A")
        await nvim.wait_ghost("filled")
        assert daemon.requests[0]["regions"][0]["max_tokens"] == 7


async def test_settings_for_the_start_of_the_service_are_there_from_the_beginning(
    daemon: Daemon, tmp_path: Path
) -> None:
    settings = "{ lacuna = { debounce = false, model = 'qwen2.5-coder-1.5b' } }"
    (tmp_path / "lacuna.toml").write_text("max_tokens = 9\n")
    (tmp_path / ".git").mkdir()
    async with running(daemon.environment, tmp_path, f"vim.lsp.config('lacuna', {{ settings = {settings} }})") as nvim:
        await nvim.start("code.py", "value = \n")
        await nvim.wait("Lacuna: the running service has the model qwen2.5-coder-0.5b")
        await nvim.keys("A")
        await nvim.wait_ghost("filled")
        assert daemon.requests[0]["regions"][0]["max_tokens"] == 9


async def test_suggestions_can_be_turned_off_or_limited_to_requests(nvim: Neovim) -> None:
    await nvim.start("code.py", "value = \n")
    await nvim.command("Lacuna toggle automatic")
    await nvim.wait("Lacuna: on request")
    await nvim.keys("A")
    await nvim.keys("<M-\\>")
    await nvim.wait_ghost("filled")
    await nvim.keys("f")
    await nvim.wait_ghost("illed")
    await nvim.keys("<BS><Esc>")
    await nvim.command("Lacuna toggle")
    await nvim.wait("Lacuna: off")
    await nvim.command("Lacuna status")
    await nvim.wait("Lacuna: off, qwen2.5-coder-0.5b")
    await nvim.keys("A<M-\\>")
    await nvim.wait("nothing to suggest here (Lacuna: off)")
    await nvim.keys("<Esc>")
    await nvim.command("Lacuna toggle")
    await nvim.command("Lacuna toggle automatic")
    await nvim.keys("A")
    await nvim.wait_ghost("filled")


async def test_a_missing_server_and_an_unmodifiable_buffer_are_reported(nvim: Neovim) -> None:
    await nvim.keys("iabc")
    await nvim.wait("abc")
    await nvim.keys("<M-\\>")
    await nvim.wait("abc nothing to suggest here (no language server is running for this file)")
    await nvim.keys("d")
    await nvim.gone("nothing to suggest")
    await nvim.keys("<Esc>")
    await nvim.command("set nomodified")
    file = await nvim.start("code.py", "a = <<fill>>\n")
    await nvim.command("set nomodifiable")
    await nvim.command("Lacuna fill")
    await nvim.wait("Lacuna: Fill 1 place: nothing was edited, code.py is not modifiable")
    assert await nvim.saved(file) == "a = <<fill>>\n"


async def test_the_readme_installs_the_plugin_in_an_empty_home_folder(daemon: Daemon, tmp_path: Path) -> None:
    readme = (PLUGIN / "README.md").read_text()
    first, second, *own = readme.partition("## Installation")[2].split("```\n")[1].splitlines()
    assert (first, second) == ("pip install .", "lacuna models pull")
    home = {name: value for name, value in daemon.environment.items() if not name.startswith("XDG_CONFIG")}
    home |= {"HOME": str(tmp_path), "PATH": f"{BIN}{os.pathsep}{home['PATH']}"}
    subprocess.run(["bash", "-ec", "\n".join(own)], env=home, cwd=PLUGIN.parents[1], check=True)
    assert await is_ready(home, tmp_path)


async def is_ready(environment: Mapping[str, str], home: Path) -> bool:
    """Start Neovim on a Python file, with the configuration in a home folder; return whether the engine gets ready."""
    (home / "code.py").write_text("value = 1\n")
    ready = "vim.wait(30000, function() return require('lacuna').statusline() == 'Lacuna: ready' end)"
    quit_well = f"if {ready} then vim.cmd.qall() else vim.cmd.cquit() end"
    command = [BIN / "nvim", "--headless", "-n", "-i", "NONE", "code.py", "-c", f"lua {quit_well}"]
    ended = await asyncio.create_subprocess_exec(*command, env=environment, cwd=home)
    return await ended.wait() == 0


# What the plugin managers do with the snippets: lazy.nvim puts ``dir`` on the runtime path and calls ``config``;
# vim.pack clones ``src`` into the folder of optional packages and adds it.
LAZY = """local function setup(spec)
  vim.opt.runtimepath:prepend(spec.dir)
  vim.cmd.runtime({ 'plugin/lacuna.lua', bang = true })
  spec.config()
end
setup(%s)
"""
PACK = """vim.pack = { add = function(specs)
  local spec = specs[1]
  local folder = vim.fn.stdpath('data') .. '/site/pack/core/opt/' .. spec.name
  assert(vim.system({ 'git', 'clone', '--quiet', spec.src, folder }):wait().code == 0)
  vim.cmd.packadd({ spec.name, bang = true })
end }
%s
"""


@pytest.mark.parametrize(("index", "manager"), [(0, LAZY), (1, PACK)], ids=["lazy.nvim", "vim.pack"])
async def test_the_readme_shows_how_plugin_managers_load_the_plugin(
    daemon: Daemon, tmp_path: Path, index: int, manager: str
) -> None:
    snippet = re.findall(r"```lua\n(.*?)```", (PLUGIN / "README.md").read_text(), re.DOTALL)[index]
    clone = tmp_path / "clone"
    shutil.copytree(PLUGIN, clone / "editor-clients/neovim")
    for arguments in (("init",), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a", "commit", "-m", "a")):
        subprocess.run(["git", *arguments], cwd=clone, check=True, capture_output=True)
    init = tmp_path / ".config/nvim/init.lua"
    init.parent.mkdir(parents=True)
    init.write_text(manager % snippet.replace("/path/to/lacuna", str(clone)))
    home = {
        name: value for name, value in daemon.environment.items() if not name.startswith(("XDG_CONFIG", "XDG_DATA"))
    }
    home |= {"HOME": str(tmp_path), "PATH": f"{BIN}{os.pathsep}{home['PATH']}"}
    assert await is_ready(home, tmp_path)


async def test_what_is_held_back_as_unsure_is_counted(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(confidence=0.1)
    await nvim.start("code.py", "value = \n", keys="A")
    await until(lambda: daemon.requests)
    await nvim.keys("<Esc>")
    for _ in range(100):
        await nvim.command("Lacuna status")
        await nvim.wait("held back as unsure")
        if nvim.shows("1 held back as unsure"):
            return
        await nvim.keys("h<C-l>")
        await nvim.gone("held back as unsure")
    raise AssertionError(nvim.screen)


async def test_a_running_command_can_be_cancelled(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(steps=500, pause=0.02)
    file = await nvim.start("code.py", "a = <<fill>>\n")
    await nvim.command("Lacuna fill")
    await until(lambda: nvim.screen.count("Fill 1 place") == 2)  # in the status line and in the command line
    await until(lambda: daemon.requests)
    await nvim.command("Lacuna cancel")
    await nvim.wait("Lacuna: ready")
    await nvim.wait("Lacuna: cancelled, nothing was edited")
    assert await nvim.saved(file) == "a = <<fill>>\n"


async def test_the_status_log_health_check_and_completion_of_commands_work(nvim: Neovim, daemon: Daemon) -> None:
    await nvim.start("code.py", "value = \n")
    for line in ("Lacuna status", "Lacuna"):
        await nvim.command(line)
        await nvim.wait("Lacuna: ready, qwen2.5-coder-0.5b")
        await nvim.wait("suggestions: 0 wanted, 0 held back as unsure")
        await nvim.keys("l")
        await nvim.gone("held back")
    await nvim.command("Lacuna nonsense")
    await nvim.wait("Lacuna: there is no command nonsense")
    await nvim.command("checkhealth lacuna")
    await nvim.wait("OK the language server is there")
    await nvim.wait("ready")
    assert not nvim.shows("WARNING")
    await nvim.command("tabonly | edit code.py")
    await nvim.command("Lacuna log")
    await nvim.wait("lacuna-lsp.log")
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert await nvim.lua(complete, "Lacuna re") == ["recipes", "refactor", "regenerate", "restart"]
    assert await nvim.lua(complete, "Lacuna fill ") == ["bodies", "markers"]
    assert await nvim.lua(complete, "Lacuna log ") == []


async def test_the_help_documents_every_command_key_and_setting(nvim: Neovim) -> None:
    text = (PLUGIN / "doc/lacuna.txt").read_text()
    for name in await nvim.lua("return vim.fn.getcompletion('Lacuna ', 'cmdline')"):
        assert f"*:Lacuna-{name}*" in text
    for name in re.findall(r"'(<Plug>\(.*?\))'", (PLUGIN / "plugin/lacuna.lua").read_text()):
        assert name in text
    shutil.copy(PLUGIN / "doc/lacuna.txt", nvim.folder)
    await nvim.request("nvim_command", f"helptags {nvim.folder}")
    for setting in msgspec.structs.fields(Settings):
        assert re.search(rf"^    {setting.encode_name}\b", text, re.MULTILINE)


async def test_the_readme_shows_the_real_screen(daemon: Daemon, tmp_path: Path) -> None:
    daemon.plan(fills=["if entry.account not in totals:", "if True:", "if entry:"])
    async with running(daemon.environment, tmp_path, AT_ONCE) as nvim:
        text = (
            "def sums(entries):\n    totals = {}\n    for entry in entries:\n        \n"
            "            totals[entry.account] = 0\n        totals[entry.account] += entry.amount\n    return totals\n"
        )
        await nvim.start("ledger.py", text, keys="3jA<M-\\>")
        await nvim.wait(" 1/3")
        seen = [line for line in nvim.screen.splitlines() if line != "~"]
        assert "\n".join(seen) in (PLUGIN / "README.md").read_text()
