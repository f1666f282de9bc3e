"""A load test of a cluster on this machine: nodes, the service, sessions that type, and a process that is killed."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.benchmarks.service import load as load_test
from tests.benchmarks.service import local_cluster
from tests.benchmarks.service.load import Load, Report
from tests.benchmarks.service.local_cluster import LocalCluster

from lacuna_model.core.errors import LacunaError
from lacuna_server.client.client import Address, Client

Victim = Literal["none", "replica", "model", "node", "ingress", "proxy", "upgrade"]
# What the command line of a victim contains; a node is a process of its own.
TITLES: dict[Victim, str] = {
    "replica": "ServeReplica:lacuna:Engine",
    "model": "lacuna_server.worker",
    "ingress": "ServeReplica:lacuna:Ingress",
    "proxy": "haproxy",
}
SERVICE = "lacuna_server serve"
OTHERS = "other processes of Ray"
READY = "serving at "
READY_S = 120.0


class Shape(msgspec.Struct, frozen=True):
    """The cluster: a head and ``workers`` nodes, ``replicas`` of the model and ``ingresses``; ``router`` as in Ray."""

    engine: str
    model: str
    workers: int = 2
    replicas: int = 2
    ingresses: int = 2
    threads: int = 1
    router: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What the clients report, and the cluster itself.

    ``restarted`` requests were started again on another replica; ``cached_share`` of the context tokens came from
    caches. ``memory_mb`` has the memory of each kind of process and its number at the end, shared pages once;
    ``cpu_s`` the CPU time that each kind took, and ``clients`` for this process.
    """

    report: Report
    killed: str
    restarted: int
    cached_share: float
    memory_mb: dict[str, tuple[int, float]]
    cpu_s: dict[str, float]


Tell = Callable[[Outcome], None]


def measure(shape: Shape, load: Load, kill: Victim, tell: Tell) -> None:
    """Put a new cluster under load, and kill -9 a process of it halfway. Raises LacunaError.

    ``tell`` is called with the outcome, before the cluster is ended.
    """
    with tempfile.TemporaryDirectory(prefix="lacuna-", dir="/tmp") as name:  # Ray needs a short path
        folder = Path(name)
        with local_cluster.running(shape.workers, folder) as cluster, serving(shape, cluster, folder) as url:
            tell(asyncio.run(_measure(url, load, kill, cluster, folder)))


def measure_one_machine(shape: Shape, load: Load, kill: Victim, tell: Tell) -> None:
    """Put a new `lacuna serve` with the same engine under load. Raises LacunaError where it does not start."""
    if kill != "none":
        raise LacunaError("only processes of a cluster are killed")
    with tempfile.TemporaryDirectory(prefix="lacuna-", dir="/tmp") as name:
        folder = Path(name)
        with serving_one_machine(shape, folder) as url:
            tell(asyncio.run(_measure(url, load, "none", None, folder)))


@contextmanager
def serving_one_machine(shape: Shape, folder: Path) -> Iterator[str]:
    """Run `lacuna serve`; yields the address. Raises LacunaError where it does not start."""
    lines = f'engine = "{shape.engine}"\nport = 0\nmodel = "{shape.model}"\nthreads = {shape.threads}\n'
    (folder / "service.toml").write_text(lines)
    variables = dict(os.environ) | {"XDG_RUNTIME_DIR": str(folder), "RAY_TMPDIR": str(folder)}  # the mark of ours
    command = [sys.executable, "-m", "lacuna_server", "serve", "--config", str(folder / "service.toml")]
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield _address(process, "url=")
        finally:
            process.terminate()


@contextmanager
def serving(shape: Shape, cluster: LocalCluster, folder: Path) -> Iterator[str]:
    """Run `lacuna serve --cluster` on a cluster; yields the address. Raises LacunaError where it does not start."""
    engine = {"replicas": shape.replicas, "num_cpus": 1, "models": [shape.model], "threads": shape.threads}
    args = {"engines": [engine], "ingresses": shape.ingresses, "proxies": "HeadOnly", "drain_s": 10}
    if shape.router:
        args["router"] = shape.router
    (folder / "args.yaml").write_text(yaml.safe_dump(args))
    (folder / "service.toml").write_text(f'engine = "{shape.engine}"\nport = 0\n')
    command = [sys.executable, "-m", "lacuna_server", "serve", "--cluster", "--address", cluster.address]
    command += ["--config", str(folder / "service.toml"), "--cluster-args", str(folder / "args.yaml")]
    with subprocess.Popen(command, env=cluster.environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield _address(process, READY)
        finally:
            process.send_signal(signal.SIGTERM)


def _address(process: subprocess.Popen[str], before: str) -> str:
    """Return what follows ``before`` on the terminal."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        if before in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()  # else a full pipe would hold its log up
            return line.partition(before)[2].split()[0]
        said = line.strip() or said
    raise LacunaError(f"the service does not start: {said}")


async def _measure(url: str, load: Load, kill: Victim, cluster: LocalCluster | None, folder: Path) -> Outcome:
    async with await Client.connect(Address(url, "")) as client:
        while (await client.status()).state != "ready":
            await asyncio.sleep(0.1)
    killing = asyncio.create_task(_kill_halfway(load, kill, cluster, folder))
    before = _cpu_s(folder)
    report = await load_test.run(Address(url, ""), load, [])
    after = _cpu_s(folder)
    found = await asyncio.to_thread(_metrics, url)
    context = found.get("lacuna_context_tokens_total", 0.0)
    return Outcome(
        report,
        await killing,
        round(found.get("lacuna_requests_restarted_total", 0.0)),
        found.get("lacuna_context_cached_tokens_total", 0.0) / context if context else 0.0,
        _memory_mb(folder),
        {kind: spent - before.get(kind, 0.0) for kind, spent in after.items()},
    )


async def _kill_halfway(load: Load, kill: Victim, cluster: LocalCluster | None, folder: Path) -> str:
    """Kill one process of the kind. Return its command line, "" for none."""
    await asyncio.sleep(load.seconds / 2)
    if kill == "none" or cluster is None:
        return ""
    if kill == "upgrade":
        args = yaml.safe_load((folder / "args.yaml").read_text())
        (folder / "args.yaml").write_text(yaml.safe_dump(args | {"service": {"max_documents": 255}}))
        os.kill(next(pid for pid, title in _processes(folder).items() if SERVICE in title), signal.SIGHUP)
        return "nothing: every replica was replaced"
    if kill == "node":
        local_cluster.kill_tree(cluster.nodes[-1])
        return f"node {len(cluster.nodes) - 1}"
    pid, title = next((pid, title) for pid, title in _processes(folder).items() if TITLES[kill] in title)
    os.kill(pid, signal.SIGKILL)
    return title[:80]


def _processes(folder: Path) -> dict[int, str]:
    """Return the command lines of the cluster's processes by their ids: its folder is in their environment."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"RAY_TMPDIR={folder}\0".encode() in (process / "environ").read_bytes():
                title = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(process.name)] = title
    return found


def _kind(title: str) -> str:
    kinds: list[tuple[str, str]] = [*TITLES.items(), ("service", SERVICE)]
    return next((kind for kind, part in kinds if part in title), OTHERS)


def _cpu_s(folder: Path) -> dict[str, float]:
    found = {"clients": time.process_time()}
    for pid, title in _processes(folder).items():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            found[_kind(title)] = found.get(_kind(title), 0.0) + ticks / os.sysconf("SC_CLK_TCK")
    return found


def _memory_mb(folder: Path) -> dict[str, tuple[int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for pid, title in _processes(folder).items():
        kind = _kind(title)
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            mb = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3
            number, total = found.get(kind, (0, 0.0))
            found[kind] = number + 1, total + mb
    return found


def _metrics(url: str) -> dict[str, float]:
    """Return the sum of the samples of each metric."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found
