"""The application of Ray Serve: the classes of both deployments, and the builder ``app`` that binds them together."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray import serve
from ray._common.tls_utils import add_port_to_grpc_server
from ray.serve import Application
from ray.serve._private import replica as ray_replica
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig
from ray.serve.handle import DeploymentHandle
from starlette.types import ASGIApp

from lacuna_cluster import settings, users
from lacuna_cluster.fleet import INGRESS, RayFleet
from lacuna_cluster.ingress import Ingress
from lacuna_cluster.links import Answered, Ask, EngineFigures, Listener, ReplicaAddress, Reply, Shown
from lacuna_cluster.settings import REQUESTS, ClusterArgs, EngineArgs
from lacuna_server.daemon.running import log_to_stderr
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Error, Progress, ServiceError
from lacuna_server.worker.process import OwnModel
from lacuna_server.worker.scheduler import Finished, Ticket

# An ingress takes all connections that come; its own limits refuse what is too much.
ANY_NUMBER = 100_000
HEALTH: dict[str, Any] = {"health_check_period_s": 2, "health_check_timeout_s": 10}
# The time that is left of draining for closing what is still open.
LAST_S = 2.0
# Where Ray Serve would have a replica listen: all addresses, any port.
EVERYWHERE = "[::]:0"
POLL_S = 0.05


class ModelLoadError(Exception):
    """The model cannot be loaded; the message says why."""


class HeldModel(OwnModel):
    """A loaded model of a replica."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.loop = asyncio.get_running_loop()
        self.unloaded = False

    async def load(self) -> None:
        """Load the model. Raises ModelLoadError where that fails for good."""
        self.start()
        while (status := self.status()).state != "ready":
            if status.state == "failed":
                await self.stop()
                raise ModelLoadError(status.detail)
            await asyncio.sleep(POLL_S)

    async def answer(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Fill a request; yields every reply. Leaving the iterator cancels the request."""
        ticket: Ticket | None = None
        try:
            ticket = self.submit(ask.submission)
            async for event in ticket.events():
                yield event if isinstance(event, Progress) else Shown(event)
            result = await ticket.result()
            yield Answered(result, ticket.finished or Finished(result.status, 0.0))
        except ServiceError as error:
            yield Error(error.code, str(error), retry_after_ms=error.retry_after_ms)
        finally:
            if ticket is not None:
                ticket.cancel()

    async def unload(self) -> None:
        """End the model's process; running requests are started again elsewhere by their ingress."""
        self.unloaded = True
        await self.finish(0.0)
        await self.stop()

    def __del__(self) -> None:
        """Unload the model: Ray Serve calls this, in a thread of its own, where another model takes its place."""
        if not self.unloaded and self.loop.is_running():
            asyncio.run_coroutine_threadsafe(self.unload(), self.loop)


class Replica:
    """The class of an engine replica, without Ray; its models have the same ``config``, with their own names."""

    def __init__(self, config: ServerConfig, models: tuple[str, ...], name: str) -> None:
        self._config = config
        self._models = models
        self._name = name
        self._held: dict[str, HeldModel] = {}

    async def hold(self, model: str) -> HeldModel:
        """Load a model that the deployment serves. Raises ModelLoadError."""
        if model not in self._models:
            raise ModelLoadError(f"no model {model!r} is served here")
        held = HeldModel(msgspec.structs.replace(self._config, model=model))
        await held.load()
        self._held[model] = held
        return held

    @property
    def held(self) -> dict[str, HeldModel]:
        """The models that are loaded now, by name."""
        return {name: held for name, held in self._held.items() if not held.unloaded}

    def report(self) -> EngineFigures:
        """Return what the replica reports of itself."""
        return EngineFigures(self._name, {name: held.status() for name, held in self.held.items()})

    async def finish(self, grace_s: float) -> None:
        """Let running requests end within ``grace_s`` seconds and refuse the others; then end the models."""
        await asyncio.gather(*(held.finish(grace_s) for held in self.held.values()))
        await asyncio.gather(*(held.unload() for held in self.held.values()))

    def check_health(self) -> None:
        """Raise ModelLoadError where a model has failed for good, so that Ray Serve replaces the replica."""
        for status in self.report().statuses.values():
            if status.state == "failed":
                raise ModelLoadError(status.detail)


class EngineDeployment(Replica):
    """An engine replica as an actor of Ray."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits it
        self, config: ServerConfig, models: tuple[str, ...], models_per_replica: int, drain_s: float
    ) -> None:
        log_to_stderr()
        listen_at_node()
        name = serve.get_replica_context().replica_id.unique_id
        super().__init__(config, models, name)

        async def hold(model: str) -> Any:
            return await self.hold(model)

        self._hold = serve.multiplexed(hold, max_num_models_per_replica=models_per_replica)
        await self._hold(models[0])
        self._listener = Listener(self._answer)
        self._drain_s = drain_s
        host = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._where = ReplicaAddress(name, host, await self._listener.open(host), self._listener.secret)

    async def _answer(self, ask: Ask) -> AsyncGenerator[Reply]:
        try:
            held = await self._hold(ask.model)
        except ModelLoadError as error:
            yield Error("model_failed", str(error))
            return
        async with aclosing(held.answer(ask)) as replies:
            async for reply in replies:
                yield reply

    def record_replica_metadata(self) -> dict[str, Any]:
        """Return where ingresses reach this replica."""
        return {"where": list(self._where)}

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Return the figures that decide how many replicas there are."""
        return {REQUESTS: float(self.report().num_requests)}

    async def figures(self) -> EngineFigures:
        """Return what the replica reports of itself; Ray Serve would call a plain method in another thread."""
        return self.report()

    async def __del__(self) -> None:
        """End: Ray Serve has told the ingresses to send nothing more."""
        if hasattr(self, "_where"):
            await self.finish(max(self._drain_s - LAST_S, 0.0))
            await self._listener.close()


@serve.ingress()
class IngressDeployment(Ingress):
    """An ingress as an actor of Ray."""

    def __init__(
        self, config: ServerConfig, handles: Mapping[str, DeploymentHandle[Any]], identity: dict[str, str]
    ) -> None:
        log_to_stderr()
        listen_at_node()
        context = serve.get_replica_context()
        fleet = RayFleet(handles, context.app_name)
        super().__init__(context.replica_id.unique_id, config, fleet, tuple(handles), **identity)
        self.start()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return self.application()

    async def __del__(self) -> None:
        if hasattr(self, "_metrics"):
            await self.close()


def listen_at_node() -> None:
    """Let this replica hear Ray Serve at the address of its node alone, which is loopback on a cluster of one machine.

    Ray Serve has no setting for it: it listens at all addresses, once the object of the replica has been made.
    """
    host = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    at_node = f"[{host}]:0" if ":" in host else f"{host}:0"

    def add(server: Any, address: str) -> int:
        where = at_node if address == EVERYWHERE else address
        port: int = add_port_to_grpc_server(server, where)  # type: ignore[no-untyped-call]
        return port

    vars(ray_replica)[add_port_to_grpc_server.__name__] = add


def app(keys: dict[str, Any]) -> Application:
    """Return the application of Ray Serve for the keys of its YAML. Raises ConfigError where one is wrong."""
    return application(settings.read(keys))


def application(args: ClusterArgs) -> Application:
    """Return the application of Ray Serve. Raises ConfigError where an argument is wrong."""
    people = users.read(Path(args.users)) if args.users else {}
    handles: dict[str, Any] = {}
    for number, engine in enumerate(args.engines):
        handles |= dict.fromkeys(engine.models, _engine(args, engine, f"Engine-{number + 1}" if number else "Engine"))
    deployment = serve.deployment(name=INGRESS)(IngressDeployment).options(
        num_replicas=args.ingresses,
        max_ongoing_requests=ANY_NUMBER,
        ray_actor_options={"num_cpus": args.ingress_cpus, **_environment()},
        user_config=msgspec.to_builtins(people),
        graceful_shutdown_timeout_s=args.drain_s,
        **HEALTH,
    )
    config = settings.service_config(args, args.engines[0])
    identity = {"user_header": args.user_header, "proxy_token": args.proxy_token}
    bound: Application = deployment.bind(config, handles, identity)
    return bound


def _engine(args: ClusterArgs, engine: EngineArgs, name: str) -> Application:
    config = settings.service_config(args, engine)
    many: dict[str, Any] = {"num_replicas": engine.replicas}
    if (scaling := engine.scaling) is not None:
        policy = AutoscalingPolicy(  # type: ignore[no-untyped-call]
            policy_function="lacuna_cluster.settings:ByRequests", policy_kwargs={"per_replica": scaling.per_replica}
        )
        autoscaling = AutoscalingConfig(
            min_replicas=scaling.least,
            max_replicas=scaling.most,
            target_ongoing_requests=scaling.per_replica,
            upscale_delay_s=scaling.upscale_delay_s,
            downscale_delay_s=scaling.downscale_delay_s,
            policy=policy,
        )
        many = {"autoscaling_config": autoscaling}
    router: dict[str, Any] = {
        "request_router_class": "lacuna_cluster.fleet.DocumentRouter",
        "request_router_kwargs": {"factor": engine.load_factor, "at_least": config.max_active},
    }
    deployment = serve.deployment(name=name)(EngineDeployment).options(
        **many,
        ray_actor_options={"num_cpus": engine.num_cpus, "num_gpus": engine.num_gpus, **_environment()},
        request_router_config=RequestRouterConfig(**router),
        graceful_shutdown_timeout_s=args.drain_s,
        graceful_shutdown_wait_loop_s=0.5,
        max_constructor_retry_count=2,
        **HEALTH,
    )
    bound: Application = deployment.bind(config, engine.models, engine.models_per_replica, args.drain_s)
    return bound


def _environment() -> dict[str, Any]:
    """Return the option of an actor that sets its variables.

    Whether there is HAProxy is the cluster's choice: a replica does as the process does that deploys it.
    """
    variables = settings.serve_environment().items()
    own = {name: value for name, value in variables if "HA" not in name or name in os.environ}
    return {"runtime_env": {"env_vars": own}}
