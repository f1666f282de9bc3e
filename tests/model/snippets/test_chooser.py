import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import tiny

from lacuna_model.core.params import Diagnostic, Snippet
from lacuna_model.files.scanning import read_source
from lacuna_model.snippets import index
from lacuna_model.snippets.chooser import SnippetChooser
from lacuna_model.snippets.definitions import CursorRows
from lacuna_model.snippets.format import join
from lacuna_model.tokenizer import Tokenizer

TOKENIZER = Tokenizer(tiny.VOCABULARY)
BUDGET = 2000

MODELS = '''\
"""Accounts."""


class Account:
    """Money that someone owns."""

    def __init__(self, owner):
        self.owner = owner

    def deposit(self, amount):
        self.balance += amount


def open_account(owner, opening):
    """A new account with an opening balance."""
    return Account(owner)
'''
TRANSFERS = """\
def refund_order(order, ledger):
    for entry in ledger.entries_of(order):
        entry.refund_amount(order.total_amount)
    ledger.close_order(order)
    return ledger.summary_of(order)
"""
MAIN = """\
from shop import open_account


def main(ledger, order):
    account = open_account("me", 1)
    for entry in ledger.entries_of(order):
        entry.refund_amount(
"""
FILES = {
    "shop/__init__.py": "from shop.models import *\nfrom .models import open_account\n",
    "shop/models.py": MODELS,
    "shop/transfers.py": TRANSFERS,
    "other/models.py": "def open_account():\n    raise NotImplementedError\n",
    "main.py": MAIN,
    ".env": "OPEN_ACCOUNT_TOKEN=1\n",
    "keys.py": f"def entries_of():\n    pass\n\n{'-----BEGIN PRIVATE KEY-----'}\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def ready(root: Path) -> SnippetChooser:
    chooser = SnippetChooser(root)
    chooser.refresh()
    return chooser


@pytest.fixture
def chooser(root: Path) -> SnippetChooser:
    return ready(root)


def choose(
    chooser: SnippetChooser,
    text: str = MAIN,
    at: int = -1,
    path: str = "main.py",
    diagnostics: tuple[Diagnostic, ...] = (),
    budget: int = BUDGET,
) -> tuple[Snippet, ...]:
    offset = len(text.encode()) if at < 0 else at
    return chooser.choose(text, offset, path, diagnostics=diagnostics, tokenizer=TOKENIZER, budget=budget)


def test_definitions_are_found_through_imports_and_similar_code_but_no_secrets(chooser: SnippetChooser) -> None:
    found = {one.path: one for one in choose(chooser)}
    assert found["shop/models.py"].text.startswith("def open_account(owner, opening):\n")
    assert found["shop/models.py"].reason == "defines `open_account`, used at line 5"
    assert "other/models.py" not in found
    similar = found["shop/transfers.py"]
    assert similar.text == TRANSFERS
    assert similar.reason.startswith("similar to the code around line 8: `")
    assert not found.keys() & {".env", "keys.py"}
    assert choose(chooser, path=".env") == ()


@pytest.mark.parametrize("change", ["def load_beta(stream, *, limit):\n    return stream.read(limit)\n", "LIMIT = 1\n"])
def test_what_a_file_no_longer_has_is_not_quoted(tmp_path: Path, change: str) -> None:
    names = ("alpha", "beta", "gamma", "delta")
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"def load_{name}(path, size):\n    return open(path).read()[:size]\n")
    imports = "".join(f"from {name} import load_{name}\n" for name in names)
    uses = "".join(f"load_{name}(1, 2)\n" for name in names)
    text = f"{imports}\n\n{uses}load_"
    chooser = ready(tmp_path)
    assert {one.path for one in choose(chooser, text)} == {f"{name}.py" for name in names}
    (tmp_path / "beta.py").write_text(change)
    chooser.refresh()
    for typed in ("", "beta(1, 2)\nload_"):
        assert all(one.text in change for one in choose(chooser, text + typed) if one.path == "beta.py")


def test_a_signature_that_a_file_no_longer_has_is_not_quoted(tmp_path: Path) -> None:
    names = ("Alpha", "Beta", "Gamma")
    makes = "".join(f"from {name} import {name}\n{name.lower()} = {name}()\n" for name in names)
    text = makes + "alpha.load_alpha(beta.load_beta(gamma.load_gamma("
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"class {name}:\n    def load_{name.lower()}(self, path, size): ...\n")
    chooser = SnippetChooser(tmp_path)
    for parameters in ("self, path, size", "self, stream, *, limit"):
        (tmp_path / "Beta.py").write_text(f"class Beta:\n    def load_beta({parameters}): ...\n")
        chooser.refresh()
        signed = [one for one in choose(chooser, text) if one.path == "Beta.py" and "how to use" in one.reason]
        assert [one.text for one in signed] == [f"def load_beta({parameters}): ...\n"]


def test_diagnostics_come_last_as_comments(chooser: SnippetChooser) -> None:
    plain = choose(chooser)
    *others, reported = choose(chooser, diagnostics=(Diagnostic(6, "'(' was\n never  closed"), Diagnostic(0, "unused")))
    assert tuple(others) == plain
    assert reported.path == "main.py"
    assert reported.text == "# line 1: unused\n# line 7: '(' was never closed\n"


def test_line_ends_make_no_difference(root: Path) -> None:
    assert choose(ready(root), MAIN) == choose(ready(root), MAIN.replace("\n", "\r\n")) != ()


@pytest.fixture(scope="module")
def shared(root: Path) -> SnippetChooser:
    """A chooser that many examples share; each example begins anew."""
    return ready(root)


@settings(max_examples=50, deadline=None)
@given(budget=st.integers(0, 900), row=st.integers(0, 6), messages=st.lists(st.text(max_size=60), max_size=4))
def test_all_snippets_keep_to_the_budget(shared: SnippetChooser, budget: int, row: int, messages: list[str]) -> None:
    shared._selections.clear()
    at = len("\n".join(MAIN.split("\n")[:row]))
    reported = tuple(Diagnostic(row, message) for message in messages)
    chosen = choose(shared, at=at, budget=budget, diagnostics=reported)
    assert len(TOKENIZER.encode(join(chosen))) <= budget


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="abxy_(). =é", max_size=20))
def test_typing_in_a_line_keeps_the_chosen_snippets(shared: SnippetChooser, typed: str) -> None:
    shared._selections.clear()
    before = choose(shared)
    for length in range(len(typed)):
        assert choose(shared, MAIN + typed[: length + 1]) == before


def test_the_definition_of_a_new_name_is_appended_to_the_other_snippets(chooser: SnippetChooser) -> None:
    text = "from shop.models import Account\n\n\ndef main(order, ledger):\n    ledger.close_order(order)\n"
    before = choose(chooser, text, path="pay.py")
    after = choose(chooser, text + "    account = Account(", path="pay.py")
    assert "shop/models.py" not in {one.path for one in before} != set()
    assert after[: len(before)] == before
    assert after[-1].reason == "defines `Account`, used at line 6"


def test_choosing_never_waits_for_the_background(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def held(*arguments: Any) -> str | None:
        reading.set()
        go_on.wait()
        return read_source(*arguments)

    monkeypatch.setattr(index, "read_source", held)
    chooser = SnippetChooser(root)
    chooser.start()
    try:
        reading.wait()
        assert choose(chooser) == ()  # the first file is being read
        assert not chooser.index.is_read
        go_on.set()
        while not chooser.index.is_read:
            time.sleep(0.01)
        assert choose(chooser) != ()
    finally:
        go_on.set()
        chooser.close()


@pytest.mark.parametrize(
    ("files", "text", "known"),
    [
        ({"ledger.py": "def load_rows(path):\n    return path\n\n\ndef _hidden():\n    pass\n"},
         ("main.py", "import ledger\n\nrows = ledger.¦\n"), "def load_rows(path):\n"),
        ({"ledger.py": "def load_rows(path):\n    return path\n"},
         ("main.py", "from ledger import ¦\n\nrows = load_rows(1)\n"), "def load_rows(path):\n"),
        ({"ledger.ts": "export function loadRows(path: string) {}\nfunction hidden() {}\n"},
         ("main.ts", 'import { ¦ } from "./ledger";\n'), "export function loadRows(path: string) {}\n"),
        ({"app/ledger.py": "def load_rows(path):\n    return path\n"},
         ("main.py", "from app import ledger as book\n\nrows = book.¦\n"), "def load_rows(path):\n"),
        ({"ledger.ts": "export function loadRows(path: string) {\n  return path;\n}\nfunction hidden() {}\n"},
         ("main.ts", 'import * as ledger from "./ledger";\nconst rows = ledger.¦\n'),
         "export function loadRows(path: string) {\n"),
        ({"ledger.js": "function loadRows(path) {\n  return path;\n}\nmodule.exports = { loadRows };\n"},
         ("main.js", 'const ledger = require("./ledger");\nconst rows = ledger.¦\n'), "function loadRows(path) {\n"),
        ({"ledger.js": "function loadRows(path) {}\nexport const one = 1;\nexport default { loadRows };\n"},
         ("main.js", 'import ledger from "./ledger";\nconst rows = ledger.¦\n'), "function loadRows(path) {}\n"),
        ({"app/ledger.py": "def load_rows(path):\n    return path\n"},
         ("main.py", "import app.ledger\n\nrows = app.ledger.¦\n"), "def load_rows(path):\n"),
        ({"src/ledger.rs": "pub fn load_rows(path: &str) -> i32 {\n    1\n}\n"},
         ("src/main.rs", "fn main() {\n    let rows = crate::ledger::¦;\n}\n"), "pub fn load_rows(path: &str) -> i32"),
        ({"ledger/load.go": "package ledger\n\nfunc LoadRows(path string) []string { return nil }\nfunc hidden() {}\n"},
         ("main.go", 'package main\n\nimport "example.com/app/ledger"\n\nvar rows = ledger.¦\n'),
         "func LoadRows(path string) []string {"),
        ({"src/ledger.rs": "pub fn load_rows(path: &str) -> i32 {\n    1\n}\nfn hidden() {}\n"},
         ("src/main.rs", "mod ledger;\n\nfn main() {\n    let rows = ledger::¦;\n}\n"),
         "pub fn load_rows(path: &str) -> i32 {\n"),
        ({"ledger.lua": "local M = {}\nfunction M.load_rows(path)\n  return path\nend\nreturn M\n"},
         ("main.lua", 'local ledger = require("ledger")\nlocal rows = ledger.¦\n'), "function M.load_rows(path)\n"),
        ({"Ledger.java": "class Ledger {\n    static int loadRows(String path) {\n        return 1;\n    }\n}\n"},
         ("Main.java", "class Main {\n    int rows = Ledger.¦;\n}\n"), "    static int loadRows(String path) {\n"),
        ({"Ledger.cs": "class Ledger {\n    public static int LoadRows(string path) {\n        return 1;\n    }\n}\n"},
         ("Main.cs", "class Main {\n    int rows = Ledger.¦;\n}\n"), "    public static int LoadRows(string path) {\n"),
        ({"Ledger.kt": "object Ledger {\n    fun loadRows(path: String): Int {\n        return 1\n    }\n}\n"},
         ("Main.kt", "val rows = Ledger.¦\n"), "    fun loadRows(path: String): Int {\n"),
        ({"ledger.cpp": "namespace ledger {\nint load_rows(const char *path) {\n    return 1;\n}\n}\n"},
         ("main.cpp", "int rows = ledger::¦;\n"), "int load_rows(const char *path) {\n"),
        ({"ledger.rb": "module Ledger\n  def self.load_rows(path)\n    path\n  end\nend\n"},
         ("main.rb", 'require_relative "ledger"\nrows = Ledger.¦\n'), "  def self.load_rows(path)\n"),
        ({"Ledger.php": "<?php\nclass Ledger {\n    public static function loadRows($path) {\n    }\n}\n"},
         ("main.php", "<?php\n$rows = Ledger::¦;\n"), "    public static function loadRows($path) {\n"),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)  # fmt: skip
def test_what_a_dot_follows_is_known(tmp_path: Path, files: dict[str, str], text: tuple[str, str], known: str) -> None:
    """The dot is the last that was typed: no name behind it tells what is looked for."""
    (tmp_path / "ledger").mkdir(), (tmp_path / "app").mkdir(), (tmp_path / "src").mkdir()
    name, marked = text
    before, _, after = marked.partition("¦")
    for path, content in {**files, name: before + after}.items():
        (tmp_path / path).write_text(content)
    chooser = ready(tmp_path)
    found = chooser.choose(before + after, len(before.encode()), name, tokenizer=TOKENIZER, budget=BUDGET)
    first = next(one for one in found if one.path in files)
    assert known in first.text
    assert "hidden" not in first.text


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_in_a_long_file_the_rows_that_are_read_have_their_numbers(newline: str) -> None:
    lines = [f"row {number} é" for number in range(20_000)]
    text = newline.join(lines).encode()
    for number in (0, 3, 5_000, 12_345, 19_999):
        at = text.index(f"row {number} ".encode()) + 4
        cursor = CursorRows.at(at, text, "a.py", "python")
        assert (cursor.row, cursor.head) == (number, "row ")
        near = range(max(number - 60, 0), min(number + 20, len(lines)))
        assert [cursor.lines[one] for one in near] == [lines[one] for one in near]
        assert cursor.lines[:100] == lines[:100]
        assert sum(map(bool, cursor.lines)) < 4_000


@pytest.fixture
def with_package(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    site = root / ".venv" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (root / ".venv" / "pyvenv.cfg").touch()
    (site / "paper.pyi").write_text("def glue(sheet: Sheet, *, slowly: bool = False) -> Sheet: ...\n")
    (root / "shop.py").write_text(MODELS)
    return root


PAPER = "from paper import glue\nfrom shop import open_account\n\naccount = open_account('me', 1)\nsheet = glue("


def test_signatures_of_packages_come_behind_the_snippets(with_package: Path) -> None:
    chooser = ready(with_package)
    reported = Diagnostic(4, "no such name")
    found = choose(chooser, PAPER, diagnostics=(reported,), budget=400)
    assert [one.path for one in found] == ["shop.py", "paper.pyi", "main.py"]
    assert found[1].text == "def glue(sheet: Sheet, *, slowly: bool = False) -> Sheet\n"
    assert found[1].reason == "how to use `glue`, at line 5"
    assert sum(one.tokens for one in found) <= 400
    (with_package / ".lacunaignore").write_text("*\n")
    assert choose(SnippetChooser(with_package), PAPER) == ()


def test_in_the_background_packages_are_read_once_a_document_imports_them(with_package: Path) -> None:
    chooser = SnippetChooser(with_package)
    chooser.start()
    try:
        while "paper.pyi" not in {one.path for one in choose(chooser, PAPER)}:
            time.sleep(0.01)
    finally:
        chooser.close()


def test_what_language_servers_say_comes_first_among_the_signatures(with_package: Path) -> None:
    chooser = ready(with_package)
    told = Snippet("main.py", "glue(sheet, *, slowly)\n", "what paperls says of `glue`", 1.0)
    found = chooser.choose(PAPER, len(PAPER), "main.py", signatures=(told,), tokenizer=TOKENIZER, budget=600)
    assert {one.path for one in found} == {"shop.py", "paper.pyi", "main.py"}
    assert found[0].path == "shop.py"
    other = chooser.choose("x = 1\n", 6, "notes.txt", signatures=(told,), tokenizer=TOKENIZER, budget=600)
    assert [one.reason for one in other] == ["what paperls says of `glue`"]
