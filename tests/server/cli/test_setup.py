"""``lacuna setup`` and ``lacuna uninstall``, in processes of their own."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.neovim import BIN
from tests.server.cli.conftest import run

from lacuna_model.hub import models

NAME = "qwen2.5-coder-0.5b"


@pytest.fixture
def machine(tmp_path: Path, coder_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a user with the tests' models, other folders of their own, and two editors on the path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvim").symlink_to(BIN / "nvim")
    code = tmp_path / "bin" / "code"
    code.write_text("#!/bin/sh\n")
    code.chmod(0o755)
    if compiler := shutil.which("cc"):
        (tmp_path / "bin" / "cc").symlink_to(compiler)
    (tmp_path / "run").mkdir(mode=0o700)
    folders = {name: str(tmp_path / name.lower()) for name in ("LACUNA_STATE", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    environment = {**folders, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    environment |= {"LACUNA_MODEL": NAME, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    yield environment
    run("stop", **environment)


def test_a_machine_is_set_up_once_and_what_is_to_be_pasted_enables_neovim(
    machine: dict[str, str], tmp_path: Path
) -> None:
    first = run("setup", "--json", **machine)
    assert (first.returncode, first.stderr) == (0, "")
    kept, *progress, last = map(json.loads, first.stdout.splitlines())
    assert {stage for line in progress for stage in line} <= {"stage", "done", "total"}
    told = last
    assert (told["model"], told["why"]) == (NAME, "LACUNA_MODEL names it")
    names, pastes = zip(*((editor["name"], editor["paste"]) for editor in told["editors"]), strict=True)
    assert names[:2] == ("VS Code", "Neovim")
    assert json.loads(run("status", "--json", **machine).stdout)["url"] == told["service"]
    assert json.loads(Path(kept["announced"]).read_text())["url"] == told["service"]

    again = run("setup", **machine)
    assert again.returncode == 0
    assert again.stdout.startswith(f"model    {NAME}: LACUNA_MODEL names it\n")
    assert f"\nservice  {told['service']}\n" in again.stdout
    assert f"other    {models.LARGE_MODEL}: better, and slower" in again.stdout
    assert f"LACUNA_MODEL={models.LARGE_MODEL}\n" in again.stdout
    assert told["fixed"] == told["service"].endswith(":8377")
    assert ("this address holds until the service ends" in again.stdout) != told["fixed"]
    assert "\nNext: open a file in your editor" in again.stdout
    assert again.stderr.splitlines()[-1] == "lacuna: starting the service"
    assert pastes[1].splitlines()[0] in again.stdout

    (tmp_path / "init.lua").write_text(pastes[1])
    ask = "lua io.stdout:write(tostring(vim.lsp.is_enabled('lacuna')), vim.fn.exists(':Lacuna'))"
    command = [str(BIN / "nvim"), "--headless", "-u", str(tmp_path / "init.lua"), "-c", ask, "-c", "qa!"]
    ended = subprocess.run(command, env=os.environ | machine, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "true2", ended.stderr


def test_uninstall_ends_well_where_the_cache_is_a_link(tmp_path: Path) -> None:
    weights = tmp_path / "disk" / "models" / "m" / "weights"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(bytes(1_000_000))
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    folders = {name: str(tmp_path / name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")}
    removed = run("uninstall", "--yes", **folders, LACUNA_CACHE=str(tmp_path / "cache"), LACUNA_STATE="")
    assert removed.returncode == 0
    assert removed.stderr.startswith("lacuna: 1 MB are free again")
    assert not weights.exists()


def test_uninstall_removes_what_lacuna_keeps_and_nothing_else(tmp_path: Path) -> None:
    cache, state, settings = tmp_path / "cache", tmp_path / "state", tmp_path / "config/lacuna/lacuna.toml"
    elsewhere = tmp_path / "elsewhere" / "weights"
    ours = [cache / "models" / "m" / "weights", cache / "speed" / "line.json", state / "lacuna/refactors/1"]
    ours += [state / "lacuna/log/service.log", state / "lacuna/log/service.old.log", state / "lacuna/run/service.lock"]
    for file in (*ours, cache / "notes.txt", settings, elsewhere):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(1_000_000))
    settings.write_text("candidates = 2\n")
    (cache / "prepared").symlink_to(elsewhere.parent)
    environment = {
        "LACUNA_CACHE": str(cache),
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    environment |= {"HOME": str(tmp_path), "LACUNA_STATE": "", "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    (tmp_path / "run").mkdir(mode=0o700)

    ended = run("setup", "--json", **environment | {"LACUNA_MODEL": "missing"})
    keeps = json.loads(ended.stdout.splitlines()[0])["keeps"]
    refused = run("uninstall", **environment)
    assert refused.returncode == 2
    assert refused.stderr.startswith("lacuna: this removes 6 MB from ")
    assert refused.stderr.endswith("without a terminal to ask in, it needs --yes\n")
    assert all(file.exists() for file in ours)

    removed = run("uninstall", "--yes", **environment)
    assert (removed.returncode, removed.stdout) == (0, "")
    assert removed.stderr.startswith(f"lacuna: 6 MB are free again; {settings} stays; ")
    assert all(any(file.is_relative_to(place) for place in keeps) for file in ours)
    assert not any(Path(place).exists() for place in keeps)
    assert list(cache.iterdir()) == [cache / "notes.txt"]
    assert not (state / "lacuna").exists()
    assert elsewhere.exists()
    again = run("uninstall", "--json", **environment)
    assert json.loads(again.stdout) == {"removed": [], "stopped": False}


def test_without_a_network_it_is_one_line_and_the_next_start_goes_on(machine: dict[str, str], tmp_path: Path) -> None:
    nowhere = {"PIP_NO_INDEX": "1", "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    part = tmp_path / "cache/downloads" / NAME / models.find(NAME).wheels[0].filename
    part.parent.mkdir(parents=True)
    part.write_bytes(b"a part")
    ended = run("setup", "--yes", **machine | {"LACUNA_CACHE": str(tmp_path / "cache")}, **nowhere)
    assert (ended.returncode, ended.stdout) == (2, "")
    *before, last = ended.stderr.splitlines()
    assert last.startswith(f"lacuna: could not fetch {NAME}: Hugging Face ")
    assert {line.partition(",")[0].partition(";")[0] for line in before} <= {
        "lacuna: fetching",
        "lacuna: the hub cannot be reached",
    }
    assert run("setup", **machine, **nowhere).returncode == 0


def test_the_model_follows_the_speed_that_the_small_one_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The large model is not downloaded where the small one has shown that it would be too slow."""
    from lacuna_model.hub import download
    from lacuna_server.cli import models as models_command

    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path))
    monkeypatch.setattr(models.machine, "free_memory", lambda: 16 << 30)
    monkeypatch.setattr(models.machine, "num_cores", lambda: 2)
    monkeypatch.setattr(models.machine, "free_on_gpu", lambda: 0)
    monkeypatch.delenv("LACUNA_MODEL")
    monkeypatch.setattr(models, "DEFAULT", models.default())
    assert models.DEFAULT.name == models.LARGE_MODEL

    for milliseconds, pulled in ((1200.0, [NAME]), (200.0, [NAME, models.LARGE_MODEL])):
        got: list[str] = []

        def pull(name: str, *_: object, got: list[str] = got, **__: object) -> Path:
            if name not in got:
                got.append(name)
            (tmp_path / name).touch()
            return tmp_path / name

        def prepare(info: models.ModelInfo, *_: object, drafts: bool = False, ms: float = milliseconds) -> None:
            if not drafts:
                models.speed_file().parent.mkdir(exist_ok=True)
                models.speed_file().write_text(json.dumps({"line_ms": ms}))

        monkeypatch.setattr(download, "pull", pull)
        monkeypatch.setattr(models_command, "prepare", prepare)
        models.speed_file().unlink(missing_ok=True)
        choice = models_command.fetched([], lambda *_: None)
        assert (got, choice.name) == (pulled, pulled[-1])
        models.speed_file().unlink()
        got.clear()
        monkeypatch.setattr(models, "weights", lambda name: tmp_path / name)
        models_command.pull()
        assert got == pulled
