"""The whole way to a lent machine and back, with the tiny model: pieces in, a run that is killed, an adapter out."""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.model import gguf_files

import lacuna_kernels
import lacuna_model
from lacuna_model.adapter import load_adapter
from lacuna_model.train.remote import Home, bundle

from .train_tiny import write_shard

RECIPE = {
    "train": {
        "minutes": 5, "rank": 4, "batch_size": 1, "report_steps": 1, "checkpoint_minutes": 0, "workers": 1
    },
    "samples": {"block_sizes": [4], "context": 128, "slots": 24, "rows": 56, "snippet_context": 16},
}  # fmt: skip
SOURCES = os.pathsep.join(str(Path(package.__path__[0]).parent) for package in (lacuna_model, lacuna_kernels))


def remote(*arguments: object) -> subprocess.CompletedProcess[str]:
    """One short command on the lent machine."""
    command = [sys.executable, "-m", "lacuna_model.train.remote", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A machine that has taken in a bundle of two pieces, and a recipe."""
    write_shard(tmp_path / "shards")
    write_shard(tmp_path / "shards", "held_out-python")
    wheel = tmp_path / "carried-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("carried.py", "here = True\n")
    weights = gguf_files.write(tmp_path / "tiny.gguf")
    size = (weights.stat().st_size + 100_000) // 2
    bundle(tmp_path / "bundle", [wheel], weights, tmp_path / "shards", None, size)
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE))
    for name in ("piece-000", "piece-001"):
        carried = tmp_path / "carried" / name
        carried.mkdir(parents=True)
        shutil.copy(tmp_path / "bundle" / "pieces.json", carried)
        shutil.copy(tmp_path / "bundle" / name, carried)
        received = remote("receive", tmp_path / "home", carried)
        assert ("tiny.gguf" in received.stdout) == (name == "piece-000"), received.stderr
    return Home(tmp_path / "home")


def wait_for_step(home: Home, step: int) -> None:
    """Let the run come to a step, and to a checkpoint of it."""
    while True:
        watched = remote("watch", home.folder, "--seconds", 1).stdout
        assert watched.endswith("running\n"), home.log.read_text()
        if f"step {step} " in home.log.read_text():
            return


def test_a_run_is_killed_resumed_stopped_and_brought_home(home: Home, tmp_path: Path) -> None:
    assert (home.site / "carried.py").is_file()
    assert remote("start", home.folder, "--recipe", tmp_path / "recipe.json").stdout == "started\n"
    wait_for_step(home, 3)
    refused = remote("start", home.folder, "--recipe", tmp_path / "recipe.json")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "at work already" in refused.stderr
    os.kill(int((home.folder / "lock").read_text()), signal.SIGKILL)
    assert remote("watch", home.folder, "--seconds", 60).stdout.endswith("ended\n")
    assert remote("start", home.folder, "--recipe", tmp_path / "recipe.json").stdout == "started\n"
    wait_for_step(home, 6)
    assert remote("stop", home.folder).stdout == "ended\n"
    remote("watch", home.folder, "--out", tmp_path / "sent")
    joined = remote("join", tmp_path / "sent", tmp_path / "back")
    assert joined.returncode == 0, joined.stderr
    log = map(json.loads, (tmp_path / "back" / "log.jsonl").read_text().splitlines())
    steps = [line["step"] for line in log if "loss" in line]
    # The step after the last checkpoint was made twice; none was left out.
    assert sorted(set(steps)) == [*range(1, max(steps) + 1)]
    assert load_adapter(tmp_path / "back" / "adapter.safetensors")[1]["step"] == str(max(steps))


def test_what_ends_a_run_is_in_its_log(home: Home, tmp_path: Path) -> None:
    shard = home.files / "train-00000.shard"
    shard.write_bytes(shard.read_bytes()[:-1])
    remote("start", home.folder, "--recipe", tmp_path / "recipe.json")
    assert "train-00000.shard: the shard is damaged" in remote("watch", home.folder, "--seconds", 60).stdout


def test_pieces_that_are_missing_at_home_are_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a" * 10)
    bundle(tmp_path / "cut", [], tmp_path / "a", tmp_path, None, 5)
    (tmp_path / "cut" / "piece-001").unlink()
    ended = remote("join", tmp_path / "cut", tmp_path / "out")
    assert "pieces of a are missing" in ended.stderr
    assert ended.returncode == 1
