from pathlib import Path

import pytest

from lacuna_model.languages.registry import language_for
from lacuna_model.snippets.definitions import Definition, Reference, definitions, outline, quote, references

SAMPLES = Path(__file__).parents[2] / "data" / "syntax"

PYTHON = '''\
import functools

LIMIT = 10


@functools.cache
def load(name):
    """Load it.

    A second paragraph,
    and more of it.
    """
    def inner():
        return 1
    return inner()


class Account(Base):
    """One account."""

    owner: str

    def __init__(self, owner):
        self.owner = owner

    @property
    def label(self):
        found = []
        return found

    async def close(
        self,
    ):
        pass
'''


def defined(text: str, path: str) -> tuple[Definition, ...]:
    language = language_for(path)
    assert language is not None
    return definitions(text, language)


def quotes(text: str, path: str) -> dict[str, str]:
    return {one.name: quote(text.split("\n"), one) for one in defined(text, path)}


def test_python_definitions_are_quoted_with_what_callers_need() -> None:
    quoted = quotes(PYTHON, "a.py")
    assert list(quoted) == ["LIMIT", "load", "Account", "__init__", "label", "close"]
    assert quoted["LIMIT"] == "LIMIT = 10\n"
    assert quoted["load"] == (
        '@functools.cache\ndef load(name):\n    """Load it.\n    A second paragraph,\n'
        "    def inner():\n        return 1\n    return inner()\n"
    )
    assert quoted["Account"] == (
        'class Account(Base):\n    """One account."""\n    owner: str\n    def __init__(self, owner):\n'
        "        self.owner = owner\n    @property\n    def label(self):\n    async def close(\n        self,\n    ):\n"
    )
    assert quoted["label"] == (
        "class Account(Base):\n    @property\n    def label(self):\n        found = []\n        return found\n"
    )


def test_long_definitions_are_cut() -> None:
    body = "".join(f"    x{i} = {i}\n" for i in range(80))
    members = "".join(f"    def m{i}(self):\n        return {i}\n" for i in range(80))
    quoted = quotes(f"def f():\n{body}\nclass C:\n{members}", "a.py")
    assert quoted["f"].count("\n") == 10
    assert quoted["C"].count("\n") == 24
    assert "return" not in quoted["C"]


NAMES = {
    "ledger.py": "Entry label Ledger __init__ add total by_note main",
    "queue.js": "EMPTY TaskQueue constructor add drain byName half",
    "shapes.ts": "Shape Named area Canvas constructor add largest Level levels",
    "Panel.tsx": "Props Panel",
    "cache.go": "ErrMissing entry Cache New Get Put Sweep",
    "stack.rs": "Token Stack Stack new apply name Stack fmt",
    "Account.java": "Account Account withdraw average compareTo",
    "table.c": "BUCKETS node hash table_put main",
    "vector.cpp": "geo Vec3 length longest main",
    "Basket.cs": "Basket Add Total",
    "page.php": "greet Page add",
    "shop.rb": "Shop Basket initialize add total cheap?",
    "list.lua": "new push find",
    "Ledger.kt": "Kind Entry Listener changed OverdrawnException Account entries listeners balance isEmpty deposit "
    "withdraw add largest report CURRENCY parse total main",
}


@pytest.mark.parametrize("file", NAMES)
def test_every_language_has_its_definitions(file: str) -> None:
    assert " ".join(one.name for one in defined((SAMPLES / file).read_text(), file)) == NAMES[file]


def test_a_class_in_braces_is_quoted_with_comment_fields_and_signatures() -> None:
    quoted = quotes((SAMPLES / "Account.java").read_text(), "Account.java")
    assert quoted["average"] == (
        "public final class Account implements Comparable<Account> {\n    public long average() {\n"
        "        return history.isEmpty() ? 0L : history.stream().mapToLong(value -> value).sum() / history.size();\n"
        "    }\n"
    )
    quoted = quotes((SAMPLES / "cache.go").read_text(), "cache.go")
    assert quoted["Cache"] == (
        "// Cache is safe for concurrent use.\ntype Cache struct {\n"
        "\tmu      sync.RWMutex\n\tentries map[string]entry\n}\n"
    )
    quoted = quotes((SAMPLES / "shapes.ts").read_text(), "shapes.ts")
    assert "add(shape: T, ...more: T[]): this {\n" in quoted["Canvas"]
    assert "this.shapes.push" not in quoted["Canvas"]


@pytest.mark.parametrize("path", ["a.json", "a.html"])
def test_languages_of_data_have_no_definitions(path: str) -> None:
    assert quotes('{"a": 1}', path) == {}


def test_definitions_are_found_in_broken_code() -> None:
    assert "close" in quotes(PYTHON.replace("found = []", "found = [("), "a.py")
    assert quotes("", "a.py") == {}


def test_an_outline_has_the_signatures_alone() -> None:
    outer = [one for one in defined(PYTHON, "a.py") if one.parent < 0]
    assert outline(PYTHON.split("\n"), outer) == "LIMIT = 10\ndef load(name):\nclass Account(Base):\n"
    text = "def load(\n    name,\n    more=1,\n):\n    return name\n"
    assert outline(text.split("\n"), defined(text, "a.py")) == "def load(\n    name,\n    more=1,\n):\n"


def found(text: str, row: int, language: str = "python") -> dict[str, Reference]:
    return {f"{one.qualifier}.{one.name}".lstrip("."): one for one in references(text.split("\n"), row, language)}


CODE = '''\
far = Other()

def pay(account: Account, amount):
    """Pay with a Docstring."""
    ledger.note(amount)  # as Comment says
    name = "Quoted()"
    account.
    total = later

def next_one(): pass
'''


def test_the_names_used_in_a_block_are_its_references() -> None:
    names = found(CODE, 6)
    assert {"Account", "account", "amount", "ledger", "ledger.note", "total", "later"} <= set(names)
    assert not {"pay", "Docstring", "Comment", "Quoted", "far", "Other", "next_one"} & set(names)
    assert names["Account"].telling
    assert names["ledger.note"].telling
    assert not names["total"].telling


def test_comments_and_strings_of_other_languages_are_skipped() -> None:
    names = found('fn pay() {\n    // Not this\n    Account::open(store->size, "Nor this");\n}\n', 2, "rust")
    assert {"Account.open", "Account", "store.size"} <= set(names)
    assert "Not" not in names
    assert "Nor" not in names
