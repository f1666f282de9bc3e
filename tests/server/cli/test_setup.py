"""``lacuna setup`` and ``lacuna uninstall``, in processes of their own."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.editor_clients.neovim import BIN
from tests.server.cli.test_main import run

from lacuna_model.hub import models

NAME = "qwen2.5-coder-0.5b"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a user with folders of their own, and a Neovim and a VS Code on the path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvim").symlink_to(BIN / "nvim")
    code = tmp_path / "bin" / "code"
    code.write_text("#!/bin/sh\n")
    code.chmod(0o755)
    (tmp_path / "run").mkdir(mode=0o700)
    folders = {name: str(tmp_path / name.lower()) for name in ("LACUNA_CACHE", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    environment = {**folders, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    environment |= {"LACUNA_MODEL": NAME, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    yield environment
    run("stop", **environment)


def have_weights(machine: Mapping[str, str], weights: Path) -> None:
    """The user has downloaded the model, and its forms are prepared."""
    cache = Path(machine["LACUNA_CACHE"])
    (cache / "models" / NAME).mkdir(parents=True)
    for file in weights.parent.iterdir():
        if file.is_file():
            (cache / "models" / NAME / file.name).hardlink_to(file.resolve())
    for kind, suffix in (("prepared", "safetensors"), ("kernels", "so")):
        (cache / kind).mkdir(mode=0o700)
        for file in (models.cache_dir() / kind).glob(f"*.{suffix}"):
            (cache / kind / file.name).hardlink_to(file)


def test_a_new_machine_is_set_up_once_and_uninstalled(machine: dict[str, str], coder_path: Path) -> None:
    have_weights(machine, coder_path)
    first = run("setup", "--json", **machine)
    assert (first.returncode, first.stderr) == (0, "")
    told = json.loads(first.stdout)
    assert (told["model"], told["why"]) == (NAME, "LACUNA_MODEL names it")
    assert [editor["name"] for editor in told["editors"]] == ["VS Code", "Neovim"]
    assert json.loads(run("status", "--json", **machine).stdout)["url"] == told["service"]

    again = run("setup", **machine)
    assert again.returncode == 0
    assert again.stdout.startswith(f"model    {NAME}: LACUNA_MODEL names it\nservice  {told['service']}\n")
    assert told["editors"][1]["paste"].splitlines()[0] in again.stdout

    settings = Path(machine["XDG_CONFIG_HOME"], "lacuna", "lacuna.toml")
    settings.parent.mkdir(parents=True)
    settings.write_text("candidates = 2\n")
    refused = run("uninstall", **machine)
    assert refused.returncode == 2
    assert refused.stderr.endswith("without a terminal to ask in, it needs --yes\n")
    removed = run("uninstall", "--yes", **machine)
    assert (removed.returncode, removed.stdout) == (0, "")
    assert f"{settings} stays; " in removed.stderr
    assert not Path(machine["LACUNA_CACHE"]).exists()
    assert not Path(machine["XDG_STATE_HOME"], "lacuna").exists()
    assert coder_path.exists()
    assert run("status", **machine).returncode == 1
    assert run("uninstall", **machine).returncode == 0


def test_what_is_to_be_pasted_enables_neovim(machine: dict[str, str], coder_path: Path, tmp_path: Path) -> None:
    have_weights(machine, coder_path)
    (paste,) = [
        editor["paste"]
        for editor in json.loads(run("setup", "--json", **machine).stdout)["editors"]
        if editor["name"] == "Neovim"
    ]
    (tmp_path / "init.lua").write_text(paste)
    ask = "lua io.stdout:write(tostring(vim.lsp.is_enabled('lacuna')), vim.fn.exists(':Lacuna'))"
    command = [str(BIN / "nvim"), "--headless", "-u", str(tmp_path / "init.lua"), "-c", ask, "-c", "qa!"]
    ended = subprocess.run(command, env=os.environ | machine, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "true2", ended.stderr


def test_it_asks_before_it_downloads(machine: dict[str, str]) -> None:
    ended = run("setup", **machine | {"LACUNA_MODEL": models.LARGE_MODEL})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "lacuna: this downloads up to 1,609 MB, which take up to 3,700 MB in "
        f"{machine['LACUNA_CACHE']}; without a terminal to ask in, it needs --yes\n"
    )
    assert not Path(machine["LACUNA_CACHE"]).exists()


def test_without_a_network_it_is_one_line_and_the_next_start_goes_on(machine: dict[str, str], coder_path: Path) -> None:
    nowhere = {"PIP_NO_INDEX": "1", "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    ended = run("setup", "--yes", **machine, **nowhere)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"lacuna: could not fetch {NAME}: ")
    assert ended.stderr.count("\n") == 1
    Path(machine["LACUNA_CACHE"], "models", NAME).rmdir()
    Path(machine["LACUNA_CACHE"], "models").rmdir()
    have_weights(machine, coder_path)
    assert run("setup", **machine, **nowhere).returncode == 0


def test_the_model_follows_the_speed_that_the_small_one_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The large model is not downloaded where the small one has shown that it would be too slow."""
    from lacuna_model.hub import download
    from lacuna_server.cli.commands import setup

    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path))
    monkeypatch.setattr(models, "_free_memory", lambda: 16 << 30)
    monkeypatch.setattr(models, "num_cores", lambda: 2)
    monkeypatch.setattr(models.gpus, "free_memory", lambda: 0)
    monkeypatch.delenv("LACUNA_MODEL")
    monkeypatch.setattr(models, "DEFAULT", models.default())
    assert models.DEFAULT.name == models.LARGE_MODEL

    for milliseconds, pulled in ((1200.0, [NAME]), (200.0, [NAME, models.LARGE_MODEL])):
        got: list[str] = []

        def pull(name: str, *_: object, got: list[str] = got) -> Path:
            if name not in got:
                got.append(name)
            return tmp_path / name

        def prepare(info: models.ModelInfo, *_: object, drafts: bool = False, ms: float = milliseconds) -> None:
            if not drafts:
                models.speed_file().parent.mkdir(exist_ok=True)
                models.speed_file().write_text(json.dumps({"line_ms": ms}))

        monkeypatch.setattr(download, "pull", pull)
        monkeypatch.setattr(setup, "prepare", prepare)
        models.speed_file().unlink(missing_ok=True)
        choice = setup._fetched([], lambda *_: None)
        assert (got, choice.name) == (pulled, pulled[-1])
