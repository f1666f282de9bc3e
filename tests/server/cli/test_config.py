"""``lacuna config``, in a process of its own, and the settings that ``lacuna serve`` and ``models`` take from files."""

import json
from pathlib import Path

import pytest
from tests.server.cli.conftest import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is a project; the user's file is ``config/lacuna/lacuna.toml`` beside it."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "config" / "lacuna").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


@pytest.fixture
def own(folder: Path) -> Path:
    return folder.parent / "config" / "lacuna" / "lacuna.toml"


def test_every_value_is_shown_with_its_source(folder: Path, own: Path) -> None:
    own.write_text('max_lines = 3\nmax_tokens = 5\ntoken = "secret"\nport = 0\n')
    own.chmod(0o600)
    (folder / "pyproject.toml").write_text("[tool.lacuna]\nmax_tokens = 7\n")
    ended = run("config", "--json")
    shown = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr, shown["problems"]) == (0, "", [])
    assert shown["files"] == {"user": str(own), "project": str(folder / "pyproject.toml")}
    settings = shown["settings"]
    assert settings["max_tokens"] == {"value": 7, "from": str(folder / "pyproject.toml")}
    assert settings["max_lines"] == {"value": 3, "from": str(own)}
    assert settings["model"] == {"value": "qwen2.5-coder-0.5b", "from": "LACUNA_MODEL"}
    assert settings["candidates"] == {"value": 3, "from": "default"}
    assert settings["token"] == {"value": "(set)", "from": str(own)}
    assert json.loads(run("config", "--json", folder.parent).stdout)["files"]["project"] is None
    table = run("config").stdout
    assert "secret" not in table
    lines = table.splitlines()
    assert max(len(line) for line in lines if line.startswith("    ")) <= 80
    at = lines.index(f"max_lines = 3  ({own})")
    assert lines[at + 1] == "    maximum length of a suggestion, in lines"
    assert f"user: {own}\n" in table


def test_what_is_wrong_is_named_and_the_rest_is_shown(folder: Path, own: Path) -> None:
    own.write_text("max_tokns = 3\nthreads = 2\n")
    (folder / "lacuna.toml").write_text('host = "0.0.0.0"\n')
    ended = run("config")
    assert ended.returncode == 1
    assert ended.stderr == (
        f"lacuna: {own}: unknown key 'max_tokns', did you mean max_tokens?\n"
        f"lacuna: {folder / 'lacuna.toml'}: host cannot be set by a project, only in your own {own}\n"
    )
    assert any(line.split()[:3] == ["threads", "=", "2"] for line in ended.stdout.splitlines())


def test_a_wrong_file_stops_the_service(own: Path) -> None:
    own.write_text("prot = 1\n")
    ended = run("serve")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"lacuna: {own}: unknown key 'prot', did you mean port?\n"
    ended = run("serve", "--port", "70000", "--config", own)
    assert ended.stderr.startswith(f"lacuna: {own}: unknown key")


def test_the_model_of_a_file_is_the_default(own: Path) -> None:
    own.write_text('model = "qwen2.5-coder-1.5b"\n')
    described = json.loads(run("models", "list", "--json", LACUNA_MODEL="").stdout)["models"]
    assert [model["default"] for model in described] == ["", f"{own} names it", ""]
