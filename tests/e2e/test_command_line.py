import json
import subprocess
import sys
from pathlib import Path

# The code is valid with empty gaps, so that a valid fill always exists.
BEFORE = "\ufeff# e\u0301 👩‍👩‍👧\r\nnames = ["
BETWEEN = "]\r\n\r\n\r\ndef total(values):\r\n\treturn sum("
AFTER = ")  # ä\u2028 end"


def lacuna(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lacuna_server", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_fill_keeps_every_byte_outside_the_gaps(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_bytes(f"{BEFORE}<<fill>>{BETWEEN}<<fill>>{AFTER}".encode())
    file.chmod(0o640)
    ended = lacuna("fill", file, "--write", "--json", "--max-tokens", 12)
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["status"] == "ok"
    first, second = answer["fills"]
    assert answer["text"] == f"{BEFORE}{first}{BETWEEN}{second}{AFTER}"
    assert file.read_bytes() == answer["text"].encode()
    assert file.stat().st_mode & 0o777 == 0o640
    assert "\n" not in (first + second).replace("\r\n", "")
    assert answer["stats"]["nfe"] > 0
    assert answer["stats"]["ms"] > 0


def test_a_long_file_is_completed_in_a_window_around_the_gap(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    lines = [f"value_{i} = [{i}]" for i in range(20_000)]
    lines[12_344] = "value_12344 = []"
    file.write_text("\n".join(lines))
    ended = lacuna("complete", file, "--at", "12345:15", "--json", "--max-tokens", 8)
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    filled = answer["text"].split("\n")
    assert filled[:12_344] == lines[:12_344]
    assert filled[-7_655:] == lines[-7_655:]
    assert 0 < answer["stats"]["context_tokens"] < 10_000
