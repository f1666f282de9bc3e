import contextlib
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lacuna_cluster import environment

SLEEP = "import time; time.sleep(60)"


def test_a_taken_port_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(environment, "PORTS", [listener.getsockname()[1]])
        with pytest.raises(OSError, match="no port is free"):
            environment.free_port()


def test_haproxy_of_this_folder_alone_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "LAST_HAPROXY_S", 0.3)
    program = tmp_path / "haproxy"
    program.symlink_to(sys.executable)
    command = [program, "-c", SLEEP]
    ours = subprocess.Popen([*command, f"{tmp_path}/a/haproxy.cfg"])
    other = subprocess.Popen([*command, f"{tmp_path}/b/haproxy.cfg"])
    try:
        environment.end_haproxy(f"{tmp_path}/a/haproxy.cfg")
        assert ours.wait(10) != 0
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


def test_a_process_of_ray_that_starts_haproxy_again_and_again_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "LAST_HAPROXY_S", 0.5)
    monkeypatch.setattr(environment, "PATIENCE_S", 1.0)
    program = tmp_path / "haproxy"
    program.symlink_to(sys.executable)
    config = f"{tmp_path}/a/haproxy.cfg"
    again = f"import subprocess\nwhile True: subprocess.call([{str(program)!r}, '-c', {SLEEP!r}, {config!r}])"
    ray = subprocess.Popen([sys.executable, "-c", again], env={"RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": config})
    try:
        environment.end_haproxy(config)
        assert ray.wait(10) != 0
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended since
                assert config.encode() not in process.read_bytes()
    finally:
        ray.kill()
        ray.wait()


def test_haproxy_has_files_and_ports_of_its_own(tmp_path: Path) -> None:
    files = environment.haproxy_files(tmp_path)
    ports = {name: int(value) for name, value in files.items() if name.endswith("_PORT")}
    assert "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT" in ports
    assert "RAY_SERVE_HAPROXY_LOG_TARGET" in files  # not to syslog, which others may read
    assert all(port in environment.PORTS for port in ports.values())
    assert all(Path(value).is_relative_to(tmp_path) for name, value in files.items() if name not in ports)
