import json
import sys
from pathlib import Path

import pytest
from tests.model import tiny

from lacuna_model import readers
from lacuna_model.hub import models
from lacuna_model.tokenizer import Tokenizer
from lacuna_server import __main__ as cli

MAIN = "from shop.models import Account\n\n\ndef main(name):\n    account: Account = \n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/models.py").write_text('class Account:\n    """Money \x1b[31m."""\n\n    owner: str\n')
    (tmp_path / "main.py").write_bytes(MAIN.replace("\n", "\r\n").encode())
    (tmp_path / ".env").write_text("ACCOUNT=1\n")
    return tmp_path


@pytest.fixture(autouse=True)
def _tiny_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "path", lambda info: Path("weights.gguf"))
    monkeypatch.setattr(readers, "load_tokenizer", lambda name: Tokenizer(tiny.VOCABULARY))


def lacuna(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["context", *map(str, arguments)])
    out, err = capfd.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_the_snippets_are_reported_as_json(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = lacuna(capfd, project / "main.py", "--at", "5:23", "--json", "--budget", "300")
    answer = json.loads(out)
    assert (code, answer["workspace"], answer["budget"]) == (0, str(project), 300)
    (only,) = answer["snippets"]
    assert (only["path"], only["reason"]) == ("shop/models.py", "defines `Account`, used at line 5")
    assert only["text"] == 'class Account:\n    """Money \x1b[31m."""\n    owner: str\n'
    assert 0 < only["tokens"] == answer["tokens"] <= 300


def test_outside_of_a_project_it_shows_what_the_file_names_beside_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("ledger.py", "other.py", "sub/third.py"):
        (tmp_path / name).write_text("def rows(day):\n    return []\n")
    (tmp_path / "main.py").write_text("import ledger\n\nfound = ledger.\n")
    (tmp_path / "alone.py").write_text("x = 1\n")
    code, out, _ = lacuna(capfd, tmp_path / "main.py", "--at", "3:15", "--json")
    assert (code, [one["path"] for one in json.loads(out)["snippets"]]) == (0, ["ledger.py"])
    code, out, err = lacuna(capfd, tmp_path / "alone.py", "--at", "1:4")
    assert (code, out) == (0, "")
    assert err.endswith("alone.py is in no project, and names no file beside it\n")


def test_an_unsaved_text_is_read_from_stdin(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "typed").write_text(f"# typed\n{MAIN}")
    with (tmp_path / "typed").open() as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        code, out, _ = lacuna(capfd, project / "new.py", "--at", "6:23", "--stdin", "--json")
    (only,) = json.loads(out)["snippets"]
    assert (code, only["reason"]) == (0, "defines `Account`, used at line 6")
