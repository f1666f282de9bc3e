import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import ray

from lacuna_cluster import commands, settings, users
from lacuna_cluster.commands import ClusterError
from lacuna_cluster.settings import ClusterArgs
from lacuna_model.commands.program import BAD_INPUT
from lacuna_server import __main__ as cli
from lacuna_server.wire.config import ConfigError, ServerConfig

Started = list[tuple[Callable[[], ClusterArgs], ServerConfig, str | None]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """What would be started, and nothing is."""
    calls: Started = []
    monkeypatch.setattr(commands, "run", lambda *arguments: calls.append(arguments))
    return calls


def test_settings_and_options_of_lacuna_serve_hold_in_a_cluster(started: Started, tmp_path: Path) -> None:
    config = ServerConfig(model="m", threads=3, max_active=5, port=99, engine="scripted_engine:load")
    commands.serve(config, "host:6379", None, 4)
    ((read, _, address),) = started
    args = read()
    (engine,) = args.engines
    assert (engine.models, engine.threads, engine.replicas, address) == (("m",), 3, 4, "host:6379")
    assert settings.service_config(args, engine).max_active == 5
    assert args.reachable is False


def test_the_file_goes_before_settings_and_is_read_again(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "args.yaml"
    file.write_text("engines: [{models: [a, b], threads: 1}, {models: [c]}]\nservice: {max_active: 7}\nusers: u\n")
    config = ServerConfig(host="0.0.0.0", threads=3, max_active=5, engine="scripted_engine:load")
    commands.serve(config, None, file, None)
    ((read, _, _),) = started
    assert [engine.models for engine in read().engines] == [("a", "b"), ("c",)]
    assert [engine.threads for engine in read().engines] == [1, 0]
    assert settings.service_config(read(), read().engines[0]).max_active == 7
    assert read().reachable is True
    file.write_text("{ingresses: 3, users: u}")
    assert read().ingresses == 3
    file.unlink()
    with pytest.raises(ConfigError, match="No such file"):  # what is deployed goes on then
        read()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("engines: [5]", "cluster: Expected `object`, got `int` - at `$.engines[0]`"),
        ("colour: 1", "unknown field `colour`"),
        ("engines: []", "$.engines"),
        ("engines: [{replicas: 0}]", "$.engines[0].replicas"),
        ("engines: [{device: gpu}]", "$.engines[0].device"),
        ("engines: [{models: [a]}, {models: [b, a]}]", "cluster: a model is served twice"),
        ("engines: [{scaling: {least: 3, most: 2}}]", "most is smaller than least - at `$.engines[0].scaling`"),
        ("user_header: X-User", "cluster: user_header needs proxy_token"),
        ("service: {host: 0.0.0.0}", "cluster: service.host has no meaning in a cluster"),
        ("proxies: Nowhere", "$.proxies"),
        ("- a", "it has no keys"),
        ("drain_s: 2024-13-45", "month must be"),
        ("a: [", "while parsing a flow node"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(started: Started, tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "args.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        commands.serve(ServerConfig(engine="scripted_engine:load"), None, file, None)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not started


def test_a_token_for_all_and_options_without_cluster_are_refused(started: Started) -> None:
    with pytest.raises(ConfigError, match="a token for each user"):
        commands.serve(ServerConfig(token="t", engine="scripted_engine:load"), None, None, None)
    assert cli.LACUNA.run(["serve", "--replicas", "2", "--model", "qwen2.5-coder-0.5b"]) == BAD_INPUT


def test_a_user_is_added_and_the_dashboard_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "users.toml"
    assert cli.LACUNA.run(["cluster", "add-user", str(file), "alice", "--requests-per-minute", "5"]) == 0
    token = capsys.readouterr().out.strip()
    assert users.find(users.read(file), token.encode()) == "alice"
    assert cli.LACUNA.run(["cluster", "add-user", str(file), "alice"]) == BAD_INPUT
    capsys.readouterr()
    assert cli.LACUNA.run(["cluster", "dashboard"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Lacuna on Ray Serve"


SLEEP = "import time; time.sleep(60)"


def test_haproxy_of_this_folder_is_ended_and_no_other_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "PATIENCE_S", 0.5)
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
        commands.end_haproxy(configs[0])
        assert (ours.wait(10), stubborn.wait(10), other.poll()) == (-signal.SIGTERM, -signal.SIGKILL, None)
        assert editor.poll() is None
    finally:
        for ended in (ours, stubborn, other, editor):
            ended.kill()
            ended.communicate()


def test_haproxy_has_files_and_ports_of_its_own(tmp_path: Path) -> None:
    files = commands.haproxy_files(tmp_path)
    ports = {name: int(value) for name, value in files.items() if name.endswith("_PORT")}
    assert "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT" in ports
    assert "RAY_SERVE_HAPROXY_LOG_TARGET" in files  # not to syslog, which others may read
    assert all(port in commands.PORTS for port in ports.values())
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
        commands.check_reachable("nowhere")
    with pytest.raises(ClusterError, match="cannot be reached"):
        commands.check_reachable("127.0.0.1:99999999999")


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
        with pytest.raises(ClusterError) as caught, commands.joined(address):
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
        commands.check_resources(args, {"CPU": 2.0})
