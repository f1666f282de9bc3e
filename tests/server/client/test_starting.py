import os
from pathlib import Path

import pytest

from lacuna_server.client import lifecycle
from lacuna_server.client.lifecycle import Running
from lacuna_server.client.starting import Address, address_at


@pytest.mark.parametrize(
    ("url", "token", "unencrypted"),
    [
        ("http://gpu.example:8377", "secret", True),
        ("http://192.168.1.5:8377", "secret", True),
        ("http://gpu.example:8377", "", False),
        ("https://gpu.example", "secret", False),
        ("http://127.0.0.1:8377", "secret", False),
        ("http://localhost:8377", "secret", False),
        ("http://[::1]:8377", "secret", False),
    ],
)
def test_a_token_travels_unencrypted_over_http_to_another_machine(url: str, token: str, unencrypted: bool) -> None:
    assert Address(url, token).unencrypted == unencrypted


def test_the_token_is_sent_only_to_this_users_own_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own = Running("http://127.0.0.1:8377", "secret", pid=os.getpid())
    assert address_at(own.url) == Address(own.url)  # no service is running
    with lifecycle.only_service():
        lifecycle.announce(own)
        for url in ("http://127.0.0.1:8377", "http://127.0.0.1:8377/", "http://localhost:8377"):
            assert address_at(url) == own
        for url in (
            *("http://127.0.0.1:8378", "http://127.0.0.2:8377", "http://[::1]:8377", "https://127.0.0.1:8377"),
            *("http://127.0.0.1:8377.example", "http://127.0.0.1:83770", "http://127.0.0.1:8377@elsewhere"),
        ):
            assert address_at(url) == Address(url)
