from typing import Any

import pytest

from lacuna_model.snippets.imports import Import, imports, module_file, module_files, stem

FILES = [
    "src/shop/__init__.py", "src/shop/models.py", "src/shop/cart/__init__.py", "src/shop/cart/items.py",
    "tools/models.py", "web/index.ts", "web/ui/button.tsx", "web/ui/index.js", "web/lib/dates.ts",
    "web/lib/dates.test.ts",
]  # fmt: skip
BY_STEM: dict[str, list[str]] = {}
for _file in FILES:
    BY_STEM.setdefault(stem(_file).rpartition("/")[2], []).append(_file)


def test_python_imports_are_read() -> None:
    text = (
        "import os, shop.models as m\nimport shop.cart.items\r\nfrom . import models\nfrom .cart import (\n"
        "    Cart,  # the one\n    Item as Thing,\n)\nfrom shop import *\n"
    )
    assert imports(text, "python") == {
        "os": Import("os"),
        "m": Import("shop.models"),
        "shop": Import("shop"),
        "items": Import("shop.cart.items"),
        "models": Import(".", "models"),
        "Cart": Import(".cart", "Cart"),
        "Thing": Import(".cart", "Item"),
        "*shop": Import("shop", "*"),
    }


def test_script_imports_are_read() -> None:
    text = (
        "import React, { useState as state, type Ref } from 'react';\nimport * as dates from \"./lib/dates\";\n"
        "import type { Day } from './lib/dates.js';\nexport * from './ui';\nconst { join } = require('path');\n"
        "const fs = require('fs');\nexport { Button } from './ui/button'\n"
    )
    assert imports(text, "typescript") == {
        "React": Import("react", "default"),
        "state": Import("react", "useState"),
        "Ref": Import("react", "Ref"),
        "dates": Import("./lib/dates"),
        "Day": Import("./lib/dates.js", "Day"),
        "*./ui": Import("./ui", "*"),
        "join": Import("path", "join"),
        "fs": Import("fs"),
        "Button": Import("./ui/button", "Button"),
    }


def test_go_imports_are_read() -> None:
    text = (
        'package main\n\nimport "fmt"\n\nimport (\n\t"example.com/app/ledger"\n\told "example.com/v1" // of then\n)\n'
    )
    assert imports(text, "go") == {
        "fmt": Import("fmt"),
        "ledger": Import("example.com/app/ledger"),
        "old": Import("example.com/v1"),
    }


def test_rust_imports_are_read() -> None:
    text = (
        "mod ledger;\npub(crate) mod other;\nuse crate::ledger::{self, load as read, deep::{One, Two}};\n"
        "use super::models::*;\nuse std::io;\n"
    )
    assert imports(text, "rust") == {
        "ledger": Import("", "ledger"),
        "other": Import("other"),
        "read": Import("ledger", "load"),
        "One": Import("ledger/deep", "One"),
        "Two": Import("ledger/deep", "Two"),
        "*models": Import("models", "*"),
        "io": Import("std", "io"),
    }


@pytest.mark.parametrize(
    ("path", "module", "name", "file"),
    [
        ("src/shop/cart/items.py", ".", "Cart", "src/shop/cart/__init__.py"),
        ("src/shop/cart/items.py", "..models", "Account", "src/shop/models.py"),
        ("src/shop/cart/items.py", "..", "models", "src/shop/models.py"),
        ("main.py", "shop.models", "Account", "src/shop/models.py"),
        ("main.py", "shop", "cart", "src/shop/cart/__init__.py"),
        ("tools/run.py", "models", "x", "tools/models.py"),
        ("main.py", "numpy", "array", None),
        ("web/index.ts", "./lib/dates", "Day", "web/lib/dates.ts"),
        ("web/index.ts", "./lib/dates.js", "Day", "web/lib/dates.ts"),
        ("web/index.ts", "./ui", "Button", "web/ui/index.js"),
        ("web/lib/dates.ts", "../ui/button", "Button", "web/ui/button.tsx"),
        ("web/index.ts", "@/lib/dates", "Day", "web/lib/dates.ts"),
        ("web/index.ts", "react", "useState", None),
    ],
)
def test_an_import_leads_to_a_file_of_the_workspace(path: str, module: str, name: str, file: str | None) -> None:
    language = "python" if path.endswith(".py") else "typescript"
    assert module_file(Import(module, name), path, language, BY_STEM) == file


@pytest.mark.parametrize(
    ("unit", "language"),
    [
        ("export {", "typescript"),
        ("import a, ", "javascript"),
        ("const {", "javascript"),
        ("from a import (\n", "python"),
    ],
)
def test_clauses_that_do_not_end_are_read_in_time_linear_in_the_text(unit: str, language: str) -> None:
    assert imports(unit * 100_000, language) == {}


@pytest.mark.parametrize(("module", "language"), [("shop.utils", "python"), ("shop/utils", "go")])
def test_files_may_be_added_while_an_import_is_looked_up(module: str, language: str) -> None:
    found = set[str]()

    class Growing(str):
        def endswith(self, *ends: Any) -> bool:
            found.add(f"{len(found)}/utils")
            return super().endswith(*ends)

    found |= {Growing(f"{number}/shop/utils/utils.{language[:2]}") for number in range(8)}
    assert module_files(Import(module), "main", language, {"utils": found}, {"utils": found}) is not None
    assert len(found) > 8
