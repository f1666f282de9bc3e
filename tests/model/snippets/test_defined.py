from pathlib import Path

import pytest
from tests.model import tiny

from lacuna_model.snippets.defined import MAX_READ, beside
from lacuna_model.tokenizer import Tokenizer

TOKENIZER = Tokenizer(tiny.VOCABULARY)
LEDGER = "def load_rows(path):\n    return path\n"


def snippets(folder: Path, text: str, name: str = "main.py") -> dict[str, str]:
    before, _, after = text.partition("¦")
    found = beside(folder / name, before + after, len(before.encode()), tokenizer=TOKENIZER, budget=400)
    return {one.path: one.text for one in found}


def test_the_module_beside_a_file_is_read_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "ledger.py").write_text(LEDGER)
    (tmp_path / "other.py").write_text(LEDGER.replace("load_rows", "load_more"))
    (tmp_path / "main.py").write_text(LEDGER)
    assert snippets(tmp_path, "import ledger\n\nrows = ledger.¦\n") == {"ledger.py": "def load_rows(path):\n"}
    assert snippets(tmp_path, "from ledger import ¦\n\nrows = load_rows(1)\n") != {}
    assert snippets(tmp_path, "import main\n\nrows = main.¦\n") == {}


@pytest.mark.parametrize("name", ["Main.java", "main.unknown"])
def test_a_class_beside_a_file_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "Ledger.java").write_text("class Ledger {\n    static int loadRows() {\n        return 1;\n    }\n}\n")
    found = snippets(tmp_path, "class Main {\n    int rows = Ledger.¦;\n}\n", name)
    assert list(found) == (["Ledger.java"] if name.endswith("java") else [])


def test_secrets_links_and_missing_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "secrets.py").write_text(LEDGER)
    (tmp_path / "keys.py").write_text(f"{LEDGER}\n{'-----BEGIN PRIVATE KEY-----'}\n")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "ledger.py").write_text(LEDGER)
    (tmp_path / "ledger.py").symlink_to(tmp_path / "far" / "ledger.py")
    text = "import secrets, keys, ledger\n\nrows = {}.¦\n"
    assert [snippets(tmp_path, text.format(name)) for name in ("secrets", "keys", "ledger")] == [{}, {}, {}]
    assert snippets(tmp_path / "nowhere", text.format("ledger")) == {}


def test_only_so_many_files_are_read(tmp_path: Path) -> None:
    names = [f"ledger_{n:02}" for n in range(MAX_READ + 4)]
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"def of_{name}(rows):\n    return rows\n")
    text = f"import {', '.join(names)}\n\nrows = {{}}.¦\n"
    assert f"{names[0]}.py" in snippets(tmp_path, text.format(names[0]))
    assert f"{names[-1]}.py" not in snippets(tmp_path, text.format(names[-1]))
