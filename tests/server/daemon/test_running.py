import pytest
from structlog.testing import capture_logs

from lacuna_server.daemon import running
from lacuna_server.wire.config import ServerConfig


def test_a_terminal_is_given_a_link_and_the_way_to_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    running.greet("http://127.0.0.1:8377", ServerConfig())
    shown = capsys.readouterr().err
    assert "\x1b]8;" in shown
    assert ";http://127.0.0.1:8377/\x1b\\" in shown
    assert "(Ctrl-C stops)" in shown
    running.greet("http://127.0.0.1:8377", ServerConfig(token="secret"))
    shown = capsys.readouterr().err
    assert "?token=" in shown
    assert "secret" not in shown


def test_an_address_without_tls_is_a_warning() -> None:
    with capture_logs() as lines:
        for host in ("127.0.0.1", "0.0.0.0"):
            running.announce(f"http://{host}:1", ServerConfig(host=host, token="t"))
    assert [line["host"] for line in lines if line["event"] == "unencrypted"] == ["0.0.0.0"]
