"""What a cluster is told, in Ray Serve's YAML or on the command line, how many replicas follow, and what Ray reads."""

import math
import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.wire.config import ConfigError, ServerConfig

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


# These keys of the service concern a machine, or what Ray Serve does.
NOT_IN_CLUSTER = (
    "host",
    "port",
    "token",
    "cert",
    "key",
    "model",
    "threads",
    "device",
    "cache_bytes",
    "idle_exit_s",
    "log_file",
)


class StrictSettings(BaseModel):
    """The base of all: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Scaling(StrictSettings):
    """Autoscaling of engine replicas between two numbers.

    A replica should have ``per_replica`` requests, running or waiting.
    """

    least: Annotated[int, Field(ge=1)] = 1
    most: Annotated[int, Field(ge=1)]
    per_replica: Annotated[float, Field(gt=0)] = 2.0
    upscale_delay_s: Annotated[float, Field(ge=0)] = 10.0
    downscale_delay_s: Annotated[float, Field(ge=0)] = 300.0

    @model_validator(mode="after")
    def _ordered(self) -> "Scaling":
        if self.most < self.least:
            raise ValueError("most is smaller than least")
        return self


class EngineArgs(StrictSettings):
    """A deployment of engine replicas.

    ``models`` are served by the same replicas, of which each holds at most ``models_per_replica`` at a time. CPUs and
    GPUs are those that Ray reserves for a replica; ``threads``, ``device`` and ``cache_bytes`` are as in `lacuna
    serve`. ``scaling`` replaces the fixed number of ``replicas``.
    """

    models: Annotated[tuple[str, ...], Field(min_length=1)] = (DEFAULT_MODEL,)
    models_per_replica: Annotated[int, Field(ge=1)] = 1
    replicas: Annotated[int, Field(ge=1)] = 1
    scaling: Scaling | None = None
    num_cpus: Annotated[float, Field(ge=0)] = 1.0
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    threads: Annotated[int, Field(ge=0)] = 0
    device: str = ""
    cache_bytes: Annotated[int, Field(ge=1)] = 256 * 1024 * 1024
    load_factor: Annotated[float, Field(ge=1)] = 1.25


class ClusterArgs(StrictSettings):
    """All of a cluster.

    ``engines`` are the deployments of engine replicas; a request that names no model goes to the first model of the
    first one. ``users`` is a file of users (see CLUSTER.md); only hashes leave it. With ``user_header`` an OIDC proxy
    names the user in that header, and proves itself with the token whose hash is ``proxy_token``. ``service`` has keys
    of the service, as in CONFIGURATION.md. ``reachable`` says that other machines can reach the ingress: then users are
    needed. ``proxies`` says which machines take connections; only `lacuna serve --cluster` reads it.
    """

    engines: Annotated[tuple[EngineArgs, ...], Field(min_length=1)] = (EngineArgs(),)
    ingresses: Annotated[int, Field(ge=1)] = 2
    ingress_cpus: Annotated[float, Field(ge=0)] = 0.0
    users: str = ""
    user_header: str = ""
    proxy_token: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    reachable: bool = True
    drain_s: Annotated[float, Field(ge=0)] = 30.0
    proxies: Literal["EveryNode", "HeadOnly"] = "EveryNode"
    service: dict[str, Any] = {}

    @model_validator(mode="after")
    def _complete(self) -> "ClusterArgs":
        if self.user_header and not self.proxy_token:
            raise ValueError("user_header needs proxy_token, or anybody could claim to be anybody")
        if wrong := sorted(set(self.service) & set(NOT_IN_CLUSTER)):
            raise ValueError(f"service.{wrong[0]} has no meaning in a cluster")
        names = [model for engine in self.engines for model in engine.models]
        if len(set(names)) < len(names):
            raise ValueError("a model is served twice")
        return self


def read(keys: dict[str, Any]) -> ClusterArgs:
    """Return the arguments. Raises ConfigError with one line for a wrong one."""
    try:
        return ClusterArgs.model_validate(keys)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "cluster"
        raise ConfigError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None


def service_config(args: ClusterArgs, engine: EngineArgs) -> ServerConfig:
    """Return the service's configuration of a deployment. Raises ConfigError for a wrong key."""
    keys = args.service | {
        "model": engine.models[0],
        "threads": engine.threads,
        "device": engine.device,
        "cache_bytes": engine.cache_bytes,
    }
    try:
        return msgspec.convert(keys, ServerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"service: {error}") from None


def check(args: ClusterArgs) -> None:
    """Raise ConfigError where others could use the cluster without a token."""
    if args.reachable and not (args.users or args.user_header):
        raise ConfigError("others can reach the cluster, so it needs users: a file, or an OIDC proxy's header")


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


def replica_environment() -> dict[str, str]:
    """Return the variables of a replica.

    Whether there is HAProxy is the cluster's choice: a replica does as the process does that deploys it.
    """
    return {name: value for name, value in serve_environment().items() if "HA" not in name or name in os.environ}
