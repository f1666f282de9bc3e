"""A Ray cluster of several nodes on this machine, for load tests: each node is a process of `ray start`."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from lacuna_cluster import environment
from lacuna_model.core.errors import LacunaError

START_S = 60.0
OBJECT_STORE_BYTES = 80_000_000
STARTED = "Ray runtime started"
RAY = ("-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats")


class LocalCluster(NamedTuple):
    """The address of a running cluster, the processes of its nodes (head first), and what clients of it need."""

    address: str
    nodes: tuple[subprocess.Popen[bytes], ...]
    environment: Mapping[str, str]


@contextmanager
def running(num_workers: int, folder: Path, cpus: int = 4) -> Iterator[LocalCluster]:
    """Start a head and worker nodes, each with ``cpus`` logical CPUs, and end them.

    ``folder`` takes Ray's files; it must have a short path. Raises LacunaError where a node does not start.
    """
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    variables = (
        environment.START
        | os.environ
        | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(folder),
            **environment.haproxy_files(folder),
        }
    )
    port = environment.free_port()
    address = f"127.0.0.1:{port}"
    common = ("--object-store-memory", str(OBJECT_STORE_BYTES), "--num-gpus", "0", "--node-ip-address", "127.0.0.1")
    head = ("--head", "--port", str(port), "--include-dashboard=false", "--temp-dir", str(folder), "--num-cpus", "0")
    with ExitStack() as stack:
        stack.callback(environment.end_haproxy, variables["RAY_SERVE_HAPROXY_CONFIG_FILE_LOC"])
        nodes = []
        for number, options in enumerate([head, *[("--address", address, "--num-cpus", str(cpus))] * num_workers]):
            log = stack.enter_context((folder / f"node-{number}.log").open("wb"))
            node = stack.enter_context(_node((*options, *common), variables, log.fileno()))
            nodes.append(node)
            _wait_for(node, Path(log.name))  # one by one: nodes of one machine that start together take the same ports
        yield LocalCluster(address, tuple(nodes), variables)


@contextmanager
def _node(options: Sequence[str], environment: Mapping[str, str], log: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, *RAY, *options], env=environment, stdout=log, stderr=log, start_new_session=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            kill_tree(process)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill -9 a node and every process that it has started, as a machine that loses its power would."""
    pids = [process.pid]
    for pid in pids:  # grows
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            pids += [int(child) for child in task.read_text().split()]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _wait_for(node: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a node has started. Raises LacunaError."""
    deadline = time.monotonic() + START_S
    while STARTED not in (said := log.read_text(errors="replace")):
        if node.poll() is not None or time.monotonic() > deadline:
            raise LacunaError(f"a node of the Ray cluster does not start: {' '.join(said.strip().splitlines()[-1:])}")
        time.sleep(0.1)
