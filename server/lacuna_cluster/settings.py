"""What a cluster is told, in Ray Serve's YAML or by `lacuna serve`, how many replicas follow, and what Ray reads."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.wire.config import (
    ConfigError,
    DeviceKey,
    NotNegative,
    Positive,
    ServerConfig,
    ThreadsKey,
    is_loopback,
    reading,
)

if TYPE_CHECKING:  # Ray reads its variables when it is imported, and they are set later
    from ray.serve.config import AutoscalingContext

REQUESTS = "requests"


class ByRequests:
    """Ray Serve's autoscaling policy for engine replicas; Serve itself applies the delays."""

    def __init__(self, per_replica: float = 2.0) -> None:
        self._per_replica = per_replica

    def __call__(self, context: "AutoscalingContext") -> tuple[int, dict[str, Any]]:
        """Return the replicas for all requests, running or waiting, within the bounds, and a state, which is empty."""
        requests = sum((context.aggregated_metrics or {}).get(REQUESTS, {}).values())
        least, most = context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas
        return min(max(math.ceil(requests / self._per_replica), least), most), {}


# The keys of the service that a cluster has for each deployment of engine replicas.
OF_ENGINES = ("threads", "device", "cache_bytes")
# These concern a machine, or what Ray Serve does.
NOT_IN_CLUSTER = ("host", "port", "token", "cert", "key", "model", *OF_ENGINES, "idle_exit_s", "log_file")


class Scaling(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Autoscaling of engine replicas between two numbers.

    A replica should have ``per_replica`` requests, running or waiting.
    """

    least: Positive = 1
    most: Positive
    per_replica: Annotated[float, Meta(gt=0)] = 2.0
    upscale_delay_s: NotNegative = 10.0
    downscale_delay_s: NotNegative = 300.0

    def __post_init__(self) -> None:
        if self.most < self.least:
            raise ValueError("most is smaller than least")


class EngineArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A deployment of engine replicas.

    ``models`` are served by the same replicas, of which each holds at most ``models_per_replica`` at a time. CPUs and
    GPUs are those that Ray reserves for a replica; ``threads``, ``device`` and ``cache_bytes`` are as in `lacuna
    serve`. ``scaling`` replaces the fixed number of ``replicas``.
    """

    models: Annotated[tuple[str, ...], Meta(min_length=1)] = (DEFAULT_MODEL,)
    models_per_replica: Positive = 1
    replicas: Positive = 1
    scaling: Scaling | None = None
    num_cpus: NotNegative = 1.0
    num_gpus: NotNegative = 0.0
    threads: ThreadsKey = ServerConfig().threads
    device: DeviceKey = ServerConfig().device
    cache_bytes: Positive = ServerConfig().cache_bytes
    load_factor: Annotated[float, Meta(ge=1)] = 1.25


class ClusterArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of a cluster.

    ``engines`` are the deployments of engine replicas; a request that names no model goes to the first model of the
    first one. ``users`` is a file of users (see CLUSTER.md); only hashes leave it. With ``user_header`` an OIDC proxy
    names the user in that header, and proves itself with the token whose hash is ``proxy_token``. ``service`` has keys
    of the service, as in CONFIGURATION.md. ``reachable`` says that other machines can reach the ingress: then users are
    needed. ``proxies`` says which machines take connections; only `lacuna serve --cluster` reads it.
    """

    engines: Annotated[tuple[EngineArgs, ...], Meta(min_length=1)] = (EngineArgs(),)
    ingresses: Positive = 2
    ingress_cpus: NotNegative = 0.0
    users: str = ""
    user_header: str = ""
    proxy_token: Annotated[str, Meta(pattern=r"^(sha256:[0-9a-f]{64})?\Z")] = ""
    reachable: bool = True
    drain_s: NotNegative = 30.0
    proxies: Literal["EveryNode", "HeadOnly"] = "EveryNode"
    service: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.reachable and not (self.users or self.user_header):
            raise ValueError("others can reach it, so it needs users: a file, or an OIDC proxy's header")
        if self.user_header and not self.proxy_token:
            raise ValueError("user_header needs proxy_token, or anybody could claim to be anybody")
        if wrong := sorted(set(self.service) & set(NOT_IN_CLUSTER)):
            raise ValueError(f"service.{wrong[0]} has no meaning in a cluster")
        names = [model for engine in self.engines for model in engine.models]
        if len(set(names)) < len(names):
            raise ValueError("a model is served twice")


def read(keys: dict[str, Any]) -> ClusterArgs:
    """Return the arguments; numbers may be texts. Raises ConfigError with one line for a wrong one."""
    try:
        return msgspec.convert(keys, ClusterArgs, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"cluster: {error}") from None


def of_service(config: ServerConfig, file: Path | None, replicas: int | None) -> ClusterArgs:
    """Return the arguments of a YAML file under the options of `lacuna serve`, and over the settings beside them.

    Raises ConfigError.
    """
    keys = _in_file(file) if file is not None else {}
    read({"reachable": False} | keys)
    usual = msgspec.to_builtins(ServerConfig())
    changed = {name: value for name, value in msgspec.to_builtins(config).items() if value != usual[name]}
    first, *others = keys.get("engines", [{}])
    first = {"models": [config.model]} | {name: changed[name] for name in OF_ENGINES if name in changed} | first
    if replicas is not None:
        first["replicas"] = replicas
    service = {name: value for name, value in changed.items() if name not in NOT_IN_CLUSTER} | keys.get("service", {})
    return read({"reachable": not is_loopback(config.host)} | keys | {"engines": [first, *others], "service": service})


def _in_file(file: Path) -> dict[str, Any]:
    with reading(file):
        try:
            keys = yaml.safe_load(file.read_text("utf-8"))
        except yaml.YAMLError as error:
            raise ValueError(error) from None
    if not isinstance(keys, dict):
        raise ConfigError(f"{file}: it has no keys")
    return keys


def service_config(args: ClusterArgs, engine: EngineArgs) -> ServerConfig:
    """Return the service's configuration of a deployment. Raises ConfigError for a wrong key."""
    own = {"model": engine.models[0]} | {name: getattr(engine, name) for name in OF_ENGINES}
    try:
        return msgspec.convert(args.service | own, ServerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"service: {error}") from None


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


def serve_environment() -> dict[str, str]:
    """Return the variables, with the values that this process has where it has them."""
    return {name: os.environ.get(name, value) for name, value in SERVE.items()}
