from pathlib import Path

import msgspec
import pytest
import trustme
from tests.server.live_service import live

from lacuna_server.client.client import Address, Client
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


async def test_a_service_with_tls_accepts_only_https(scripted_engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    for name, blob in (("cert", certificate.cert_chain_pems[0]), ("key", certificate.private_key_pem)):
        blob.write_to_path(str(scripted_engine / name))
    authority.cert_pem.write_to_path(str(scripted_engine / "authority"))
    monkeypatch.setenv("SSL_CERT_FILE", str(scripted_engine / "authority"))
    config = {"cert": str(scripted_engine / "cert"), "key": str(scripted_engine / "key")}
    check_config(ServerConfig(**config))
    async with live(**config) as (_, address):
        async with await Client.connect(Address(f"https://{address}")) as client:
            assert (await client.status()).sessions == 1
        with pytest.raises(OSError, match="does not answer"):
            await Client.connect(Address(f"http://{address}"), give_up_s=0)
