from pathlib import Path

import msgspec
import pytest

from lacuna_server.wire.config import ConfigError, ServerConfig, Settings, check_config


@pytest.mark.parametrize("name", ["threads", "device", "port"])
def test_a_key_of_both_structs_has_one_meaning(name: str) -> None:
    mine, theirs = (
        next(key for key in msgspec.structs.fields(struct) if key.name == name) for struct in (Settings, ServerConfig)
    )
    assert (mine.type, mine.default) == (theirs.type, theirs.default)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.local"])
def test_any_other_address_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="--token-file"):
        check_config(ServerConfig(host=host))
    check_config(ServerConfig(host=host, token="secret"))


def test_an_invalid_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.pem"):
        check_config(ServerConfig(cert="nowhere.pem", key="nowhere.pem"))
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(ConfigError, match=r"bad\.pem"):
        check_config(ServerConfig(cert=str(tmp_path / "bad.pem"), key=str(tmp_path / "bad.pem")))
