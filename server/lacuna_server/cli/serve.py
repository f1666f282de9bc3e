"""``lacuna serve``, ``status``, ``stop`` and ``logs``: the service that all editors share, and what it has logged."""

import time
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import DEVICE_HELP, MODEL_HELP, JsonOption
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.client import lifecycle
from lacuna_server.client.lifecycle import LifecycleError
from lacuna_server.client.starting import log_path
from lacuna_server.wire.config import DEFAULT_PORT, ConfigError, token_in

STOP_TIMEOUT_S = 30.0
NOT_RUNNING = FAILED = 1


def serve(
    host: Annotated[
        str | None,
        typer.Option(help="Listen on this address; by default 127.0.0.1. An address beyond loopback needs a token."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help=f"Listen on this port; 0: any free port; by default {DEFAULT_PORT}, or a free port if that is taken."
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Refuse clients that do not send the token in this file.")
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"{MODEL_HELP[:-1]}; by default {DEFAULT_MODEL}.")] = None,
    threads: Annotated[
        int | None, typer.Option(help="Use this many CPU threads; 0: one per core, at most 8; by default 0.")
    ] = None,
    device: Annotated[str | None, typer.Option(help=DEVICE_HELP)] = None,
    idle_exit: Annotated[
        float | None, typer.Option(help="Exit after this many seconds without use; 0: never; by default 0.")
    ] = None,
    cert: Annotated[str | None, typer.Option(help="Use this TLS certificate, a PEM file.")] = None,
    key: Annotated[str | None, typer.Option(help="Use this TLS key, a PEM file.")] = None,
    log_code: Annotated[
        bool | None, typer.Option("--log-code", help="Allow code from documents in the log's tracebacks.")
    ] = None,
    log_file: Annotated[
        str | None, typer.Option(help="Write the log to this file, rotated at 1 MB; by default to stderr.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--config", help="Read this TOML file in place of your own and the project's.")
    ] = None,
    cluster: Annotated[bool, typer.Option("--cluster", help="Serve a team on a Ray cluster; see CLUSTER.md.")] = False,
    address: Annotated[
        str | None, typer.Option(help="With --cluster: join the Ray cluster at HOST:PORT; by default, start one.")
    ] = None,
    cluster_args: Annotated[
        Path | None, typer.Option("--cluster-args", help="With --cluster: a YAML file with the keys of CLUSTER.md.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, help="With --cluster: hold the model in this many engine replicas.")
    ] = None,
) -> None:
    """Load a model once, and serve all editors and tools on this machine."""
    flags: dict[str, Any] = {"host": host, "port": port, "model": model, "threads": threads, "device": device}
    flags |= {"idle_exit_s": idle_exit, "cert": cert, "key": key, "log_code": log_code, "log_file": log_file}
    flags["token"] = token_in(token_file) if token_file is not None else None
    from lacuna_server.daemon import serving

    settings = serving.configured({name: value for name, value in flags.items() if value is not None}, file)
    if cluster:
        # By its name: the cluster imports this package, and nothing here the cluster.
        import_module("lacuna_cluster.commands").serve(settings, address, cluster_args, replicas)
        return
    if address or cluster_args or replicas:
        raise ConfigError("--address, --cluster-args and --replicas are for --cluster")
    serving.serve(settings)


def status(json_output: JsonOption = False) -> None:
    """Show whether a service of this user is running, its address and its state; fail if its model has failed."""
    running = lifecycle.find()
    if running is None:
        if json_output:
            output.print_json({"running": False})
        output.say("no service of this user is running; `lacuna setup` starts one, and so does an editor with Lacuna")
        raise typer.Exit(NOT_RUNNING)
    from lacuna_server.client.blocking import connected  # imported here, because `serve` listens before it loads this

    with connected(running) as engine:
        now = engine.status()
    if json_output:
        output.print_json({"running": True, "pid": running.pid, "url": running.url, "status": now})
    else:
        model = f"{now.state} {now.fraction:.0%}" if now.state == "loading" else f"{now.state} {now.detail}".strip()
        times = "once" if now.restarts == 1 else f"{now.restarts} times"
        again = f"started again {times}, the last time because {now.restarted}\n" if now.restarts else ""
        output.print_exact(
            f"{running.url} (process {running.pid})\n"
            f"model {now.model}: {model}\n"
            f"sessions {now.sessions - 1}, documents {now.documents}\n"
            f"requests {now.running} running, {now.queued} waiting\n{again}"
        )
    if now.state == "failed":
        raise typer.Exit(FAILED)


def stop() -> None:
    """Stop this user's service; running requests finish first."""
    running = lifecycle.find()
    if running is None:
        output.say("no service of this user is running")
        raise typer.Exit(NOT_RUNNING)
    lifecycle.ask_to_end(running)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while (found := lifecycle.find()) is not None and found.pid == running.pid:
        if time.monotonic() > deadline:
            raise LifecycleError(f"process {running.pid} has not ended after {STOP_TIMEOUT_S:.0f} s")
        time.sleep(0.05)
    output.say(f"stopped the service at {running.url} (process {running.pid})")


NO_LOG = 1
POLL_S = 0.3


def logs(
    which: Annotated[
        Literal["service", "lsp"], typer.Argument(metavar="service|lsp", help="The program that writes the log.")
    ] = "service",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Print this many of the last lines.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing new lines until Ctrl-C.")] = False,
    path: Annotated[bool, typer.Option("--path", help="Print only the path of the log.")] = False,
) -> None:
    """Show the last lines of the log of the service that an editor started, or of the language server."""
    file = log_path(which)
    if path:
        output.print_exact(f"{file}\n")
        return
    if not file.is_file() and not follow:
        output.say(f"there is no log yet: {file}")
        raise typer.Exit(NO_LOG)
    output.say(str(file))
    data = file.read_bytes() if file.is_file() else b""
    _print(b"".join(data.splitlines(keepends=True)[-lines:] if lines else []))
    end = len(data)
    while follow:
        time.sleep(POLL_S)
        size = file.stat().st_size if file.is_file() else 0
        if size != end:
            with file.open("rb") as stream:
                stream.seek(end if size > end else 0)  # a file that became shorter was begun anew
                _print(stream.read())
                end = stream.tell()


def _print(data: bytes) -> None:
    output.print_exact(data.decode(errors="replace"))
