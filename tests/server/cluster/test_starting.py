import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import ray

from lacuna_cluster import settings, starting
from lacuna_cluster.starting import ClusterError
from lacuna_server.wire.config import ConfigError

SLEEP = "import time; time.sleep(60)"


def test_haproxy_of_this_folder_is_ended_and_no_other_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "PATIENCE_S", 0.5)
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); {SLEEP}"
    pipe = subprocess.PIPE
    configs = [str(tmp_path / folder / "haproxy.cfg") for folder in "aaba"]
    names = ["haproxy1", "haproxy2", "haproxy3", "editor"]
    for name, program in zip(names, (SLEEP, deaf, SLEEP, SLEEP), strict=True):
        (tmp_path / name).write_text(program)
    ours, stubborn, other, editor = (
        subprocess.Popen([sys.executable, str(tmp_path / name), "-f", config], stdout=pipe)
        for name, config in zip(names, configs, strict=True)
    )
    try:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        starting.end_haproxy(configs[0])
        assert (ours.wait(10), stubborn.wait(10), other.poll()) == (-signal.SIGTERM, -signal.SIGKILL, None)
        assert editor.poll() is None
    finally:
        for ended in (ours, stubborn, other, editor):
            ended.kill()
            ended.communicate()


def test_haproxy_has_files_and_ports_of_its_own(tmp_path: Path) -> None:
    files = starting.haproxy_files(tmp_path)
    ports = {name: int(value) for name, value in files.items() if name.endswith("_PORT")}
    assert "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT" in ports
    assert "RAY_SERVE_HAPROXY_LOG_TARGET" in files  # not to syslog, which others may read
    assert all(port in starting.PORTS for port in ports.values())
    assert all(Path(value).is_relative_to(tmp_path) for name, value in files.items() if name not in ports)


MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.9.0
    Python: 3.12.1
This process on node 1.2.3.4 was started with:
    Ray: 2.60.0
    Python: 3.11.7
"""


def lacuna_serve(tmp_path: Path, *options: str, before: str = "") -> tuple[int, list[str]]:
    """Run `lacuna serve --cluster` with the scripted engine; return its exit code and what it says."""
    config = tmp_path / "service.toml"
    config.write_text('engine = "scripted_engine:load"\nport = 0\n')
    program = f"{before}\nfrom lacuna_server.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "serve", "--cluster", "--config", str(config), *options],
        env=dict(os.environ) | {"LACUNA_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.returncode, ended.stderr.splitlines()


def test_without_ray_one_line_says_how_to_install_it(tmp_path: Path) -> None:
    code, said = lacuna_serve(tmp_path, before="import sys; sys.modules['ray'] = None")
    assert (code, said) == (2, ["lacuna: --cluster needs Ray: pip install 'lacuna-code[cluster]'"])


def test_an_address_where_nobody_listens_is_one_line(tmp_path: Path) -> None:
    code, said = lacuna_serve(tmp_path, "--address", "127.0.0.1:9")
    why = "[Errno 111] Connection refused"
    assert (code, said) == (2, [f"lacuna: the Ray cluster at 127.0.0.1:9 cannot be reached: {why}"])
    with pytest.raises(ClusterError, match="nowhere is not the address"):
        starting.check_reachable("nowhere")
    with pytest.raises(ClusterError, match="cannot be reached"):
        starting.check_reachable("127.0.0.1:99999999999")


def test_other_bad_input_is_one_line_before_ray_is_started(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text("[alice]\nrequests_per_minute = 5\n")
    users.chmod(0o644)
    args = tmp_path / "args.yaml"
    args.write_text(f"users: {users}\n")
    code, said = lacuna_serve(tmp_path, "--cluster-args", str(args))
    assert (code, said) == (2, [f"lacuna: {users}: others can read it or write to it; run: chmod go-rwx {users}"])
    code, said = lacuna_serve(tmp_path, "--host", "0.0.0.0")
    assert (code, len(said)) == (2, 1)
    assert "needs users" in said[0]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (RuntimeError(MISMATCH), "has another version of Ray or Python: The cluster was started with: Ray: 2.9.0"),
        (RuntimeError("RPC error: InvalidAuthToken: no"), "asks for Ray's token: set RAY_AUTH_MODE=token"),
        (ConnectionError("a traceback\n  of many\nlines: the reason"), "cannot be joined: lines: the reason"),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_one_line(
    error: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**options: Any) -> None:
        raise error

    monkeypatch.setattr(ray, "init", refuse)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ClusterError) as caught, starting.joined(address):
            pass
    assert str(caught.value).startswith(f"the Ray cluster at {address} ")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        ({"num_cpus": 1, "replicas": 2}, ""),
        ({"num_gpus": 1}, "a replica needs 1 GPUs, the cluster has 0"),
        ({"num_cpus": 1, "replicas": 3}, "the replicas need 3 CPUs, the cluster has 2"),
    ],
)
def test_replicas_that_no_node_can_hold_are_refused(engine: dict[str, int], why: str) -> None:
    args = settings.read({"reachable": False, "engines": [engine]})
    with pytest.raises(ConfigError, match=why) if why else nullcontext():
        starting.check_resources(args, {"CPU": 2.0})
