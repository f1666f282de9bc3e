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


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "python",
            "import os, shop.models as m\nimport shop.cart.items\r\nfrom . import models\nfrom .cart import (\n"
            "    Cart,  # the one\n    Item as Thing,\n)\nfrom shop import *\n",
            "os=os m=shop.models shop=shop items=shop.cart.items models=.:models Cart=.cart:Cart Thing=.cart:Item "
            "*shop=shop:*",
        ),
        (
            "typescript",
            "import React, { useState as state, type Ref } from 'react';\nimport * as dates from \"./lib/dates\";\n"
            "import type { Day } from './lib/dates.js';\nexport * from './ui';\nconst { join } = require('path');\n"
            "const fs = require('fs');\nexport { Button } from './ui/button'\n",
            "React=react:default state=react:useState Ref=react:Ref dates=./lib/dates Day=./lib/dates.js:Day "
            "*./ui=./ui:* join=path:join fs=fs Button=./ui/button:Button",
        ),
        (
            "go",
            'package main\n\nimport "fmt"\n\n'
            'import (\n\t"example.com/app/ledger"\n\told "example.com/v1" // of then\n)\n',
            "fmt=fmt ledger=example.com/app/ledger old=example.com/v1",
        ),
        (
            "rust",
            "mod ledger;\npub(crate) mod other;\nuse crate::ledger::{self, load as read, deep::{One, Two}};\n"
            "use super::models::*;\nuse std::io;\n",
            "ledger=:ledger other=other read=ledger:load One=ledger/deep:One Two=ledger/deep:Two *models=models:* "
            "io=std:io",
        ),
    ],
)
def test_imports_are_read(language: str, text: str, expected: str) -> None:
    """Expected are local names, each with its module and, behind a colon, the name in it."""
    wanted = (one.partition("=") for one in expected.split())
    assert imports(text, language) == {
        local: Import(*where.split(":")) if ":" in where else Import(where) for local, _, where in wanted
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
