"""What holds for the whole tree, whatever the language of a file."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Where pip, npm, apt, cargo and the hub's client fetch from is theirs to know. Spelled so that this file names none.
REGISTRIES = (
    "py" + "pi.org", "pythonhosted" + ".org", "npm" + "js.org", "npm" + "js.com", "yarn" + "pkg.com",
    "deb.debian" + ".org", "crates" + ".io", "hugging" + "face.co", "proxy.golang" + ".org", "ruby" + "gems.org",
)  # fmt: skip


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no clone")
    return [path for name in listed.stdout.decode().split("\0")[:-1] if (path := ROOT / name).is_file()]


def test_no_file_holds_the_address_of_a_package_registry() -> None:
    files = [(path, path.read_bytes().lower()) for path in tracked()]
    assert [(path, host) for path, data in files for host in REGISTRIES if host.encode() in data] == []


def test_lock_files_say_what_is_fetched_but_not_from_where() -> None:
    locks = [path for path in tracked() if path.name == "package-lock.json"]
    assert locks
    for path in locks:
        packages = json.loads(path.read_text())["packages"]
        assert not any("resolved" in package for package in packages.values())
        assert "omit-lockfile-registry-resolved=true" in path.with_name(".npmrc").read_text().splitlines()
