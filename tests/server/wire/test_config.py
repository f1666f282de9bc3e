from pathlib import Path

import pytest

from lacuna_server.wire.config import ConfigError, ServerConfig, check_config


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
