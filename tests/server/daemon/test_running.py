import os
import signal
import subprocess
import sys
from pathlib import Path

from structlog.testing import capture_logs
from tests.server.worker.test_streams import full_pipe

from lacuna_server.daemon import running
from lacuna_server.wire.config import ServerConfig

CASE = """
import pathlib, sys
import structlog
from lacuna_server.daemon import running
running.configure_log(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None)
for number in range(5000):
    structlog.get_logger().info("line", number=number)
print("printed", file=sys.stderr)
print("printed")
raise SystemExit(7)
"""


def test_an_address_without_tls_is_a_warning() -> None:
    with capture_logs() as lines:
        for host in ("127.0.0.1", "0.0.0.0"):
            running.announce(f"http://{host}:1", ServerConfig(host=host, token="t"))
    assert [line["host"] for line in lines if line["event"] == "unencrypted"] == ["0.0.0.0"]


async def test_a_signal_that_came_before_the_service_ran_ends_it() -> None:
    """What its first handler raises is lost where it comes in the middle of an import."""
    kept = {number: signal.getsignal(number) for number in running.ENDING}
    try:
        with running._signals(["SIGTERM"]) as asked:
            assert asked.get_nowait() == "SIGTERM"
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def test_the_program_does_not_wait_for_a_pipe_that_nobody_reads() -> None:
    reading, writing, _ = full_pipe()
    os.set_blocking(writing, True)
    said = subprocess.run([sys.executable, "-c", CASE], stdout=writing, stderr=writing, timeout=60)
    assert said.returncode == 7
    os.close(reading)
    os.close(writing)


def test_only_its_user_can_read_the_file_and_lines_are_appended(tmp_path: Path) -> None:
    file = tmp_path / "service.log"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", CASE.replace("5000", "2"), str(file)], timeout=60)
    text = file.read_text()
    assert (text.count("event=line"), text.count("printed")) == (4, 4)
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_clients_say_moves_no_cursor_and_begins_no_line(tmp_path: Path) -> None:
    file = tmp_path / "service.log"
    case = CASE.replace("number=number", 'client="a\\x1b[2Jb\\rc\\nd\\u202ee\\x9bf\\u00f6"').replace("5000", "1")
    subprocess.run([sys.executable, "-c", case, str(file)], timeout=60, check=False)
    (line,) = (line for line in file.read_text().split("\n") if "event=line" in line)
    assert line.isprintable()
    assert all(one in line for one in ("x1b[2Jb", "rc", "u202ee", "x9bf\u00f6"))


def test_a_long_log_is_rotated_for_all_its_writers(tmp_path: Path) -> None:
    file = tmp_path / "service.log"
    with file.open("ab", buffering=0) as service, file.open("ab", buffering=0) as worker:
        service.write(b"x" * running.TURN_OVER_BYTES)
        running.turn_log_over(file)
        service.write(b"of the service\n")
        worker.write(b"of the worker\n")
    assert file.read_bytes() == b"of the service\nof the worker\n"
    old = (tmp_path / "service.old.log").stat()
    assert (old.st_size, old.st_mode & 0o777) == (running.TURN_OVER_BYTES, 0o600)


def test_a_long_log_that_cannot_be_copied_is_emptied(tmp_path: Path) -> None:
    file = tmp_path / "service.log"
    file.write_bytes(b"x" * running.TURN_OVER_BYTES)
    (tmp_path / "service.old.log").mkdir()  # a folder in the place of the copy prevents it
    running.turn_log_over(file)
    assert file.read_bytes() == b""
