import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lacuna_cluster import commands, settings, starting, users
from lacuna_cluster.settings import ClusterArgs
from lacuna_model.commands.program import BAD_INPUT
from lacuna_server import __main__ as cli
from lacuna_server.wire.config import ConfigError, ServerConfig

Started = list[tuple[Callable[[], ClusterArgs], ServerConfig, str | None]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """What would be started, and nothing is."""
    calls: Started = []
    monkeypatch.setattr(starting, "run", lambda *arguments: calls.append(arguments))
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
