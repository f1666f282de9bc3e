from pathlib import Path

import pytest

from lacuna_server.wire.config import ConfigError, ServerConfig, load


def test_flags_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "lacuna.toml"
    file.write_text('host = "::1"\nport = 1234\nallowed_hosts = ["box", "box.local"]\n')
    config = load(file, {"port": 99, "log_code": True})
    assert config == ServerConfig(host="::1", port=99, allowed_hosts=("box", "box.local"), log_code=True)


def test_without_a_file_the_defaults_apply() -> None:
    assert load(None, {}) == ServerConfig()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("prot = 1", "prot"),
        ("port = 70000", "port"),
        ('max_active = "many"', "max_active"),
        ("max_queued = 0", "max_queued"),
        ("idle_exit_s = -1", "idle_exit_s"),
        ("port = ", "Invalid value"),
    ],
)
def test_an_invalid_option_is_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "lacuna.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=named) as caught:
        load(file, {})
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("port", 65536, "--port must be 0 to 65535"),
        ("threads", -1, "--threads must be a number of at least 0"),
        ("idle_exit_s", -0.5, "--idle-exit must be a number of at least 0"),
        ("log_code", 1, "--log-code must be true or false"),
        ("host", 1, "--host must be a text"),
    ],
)
def test_a_wrong_option_is_told_in_plain_words(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {name: value})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("port = 70000", "port must be 0 to 65535"),
        ("prot = 1", "there is no setting prot"),
        ("max_queued = 0", "max_queued must be a number of at least 1"),
        ('allowed_hosts = "box"', "allowed_hosts must be a list of texts"),
    ],
)
def test_a_wrong_setting_is_told_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "lacuna.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert str(caught.value) == f"{file}: {message}"


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lacuna.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"lacuna\.toml"):
        load(file, {})
