"""A service on a Ray cluster of this machine, in processes of its own: no test imports Ray."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.server.scripted.scripted_engine import COUNT_VARIABLE

SCRIPTED = Path(__file__).parents[1] / "scripted"
READY = "serving at "
# Busy cores take long to end all processes.
END_S = 120


class LiveCluster(NamedTuple):
    """The address ``HOST:PORT`` of a cluster, the file in which its engine counts steps, and the serving process."""

    address: str
    count: Path
    process: subprocess.Popen[str]
    folder: Path

    def processes(self, part: str) -> list[int]:
        """Return the ids of its processes whose command line contains ``part``."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                ours = f"RAY_TMPDIR={self.folder}\0".encode() in (process / "environ").read_bytes()
                if ours and part in (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def listening(self) -> dict[str, set[str]]:
        """Return the addresses, in the form of ``/proc/net/tcp``, at which its processes listen, and their commands."""
        sockets: dict[str, str] = {}
        for process in self.processes(""):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                links = [os.readlink(one) for one in Path(f"/proc/{process}/fd").iterdir()]
                sockets |= dict.fromkeys(links, command[:200])
        found: dict[str, set[str]] = {}
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and (socket := f"socket:[{words[9]}]") in sockets:
                    found.setdefault(words[1].partition(":")[0], set()).add(sockets[socket])
        return found

    def variable(self, process: int, name: str) -> str:
        """Return an environment variable of a process."""
        lines = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
        return dict(line.split("=", 1) for line in lines if "=" in line)[name]


def environment(folder: Path) -> dict[str, str]:
    """The environment of a cluster whose files are in a folder with a short path."""
    return dict(os.environ) | {
        "PYTHONPATH": str(SCRIPTED),
        COUNT_VARIABLE: str(folder / "count"),
        "HOME": str(folder),
        "LACUNA_CACHE": str(folder / "cache"),
        "RAY_TMPDIR": str(folder),
        # The tests run on few cores: less often than by default, Ray looks after itself.
        "RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "0.2",
        "RAY_enable_metrics_collection": "0",
    }


def command(folder: Path, args: Mapping[str, Any], *options: str) -> list[str]:
    """The command that serves with these keys of CLUSTER.md."""
    (folder / "args.yaml").write_text(yaml.safe_dump(dict(args)))
    (folder / "service.toml").write_text('engine = "scripted_engine:load"\nport = 0\n')
    files = ["--config", str(folder / "service.toml"), "--cluster-args", str(folder / "args.yaml")]
    return [sys.executable, "-m", "lacuna_server", "serve", "--cluster", *files, *options]


@contextmanager
def live_cluster(folder: Path, **args: Any) -> Iterator[LiveCluster]:
    """Run a cluster with the scripted engine: two engine replicas unless ``args`` say otherwise.

    Told to end, it ends as it should, and leaves no HAProxy.
    """
    args.setdefault("engines", [{"replicas": 2, "num_cpus": 0.1}])
    (folder / "count").touch()
    with (
        (folder / "err").open("w") as err,
        subprocess.Popen(
            command(folder, args), env=environment(folder), cwd=folder, stdout=err, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith(READY):
                    break
            else:
                raise AssertionError("".join(said))
            address = said[-1].split()[2].removeprefix("http://")
            running = LiveCluster(address, folder / "count", process, folder)
            yield running
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(END_S)
    assert process.returncode == 0
    assert running.processes("haproxy") == []
