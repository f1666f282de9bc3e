"""The engine of a command: this user's running service, or an engine in this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from lacuna_model.commands import output
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.client import lifecycle
from lacuna_server.wire import layers

if TYPE_CHECKING:
    from lacuna_model.engine import Engine
    from lacuna_server.client.blocking import ServiceEngine
    from lacuna_server.client.lifecycle import Address


FillEngine: TypeAlias = "ServiceEngine | Engine"


@contextmanager
def opened(model: str | None, service: bool | None) -> Iterator[tuple[FillEngine, str]]:
    """Yields a loaded engine and the name of its model: the service, or else an engine in this process.

    ``model`` and ``service`` are the options ``--model`` and ``--service``, None where they are not given.
    """
    from rich.console import Console

    with served(model, service) as running:
        if running is not None:
            yield running
            return
    name = model or DEFAULT_MODEL
    models.weights(name)  # the cheap check first: torch takes seconds to load
    with Console(stderr=True).status("loading") as shown:
        engine = load_engine(name, shown.update)
    yield engine, name


@contextmanager
def served(model: str | None, service: bool | None) -> Iterator["tuple[ServiceEngine, str] | None"]:
    """Yields this user's service with its model loaded, and that model's name.

    Yields None where none runs with this model, or none is wanted.

    If ``service`` is true, a service is started where none runs.
    """
    running = lifecycle.find() if service is not False else None
    if running is None and not service:
        yield None
        return
    from rich.console import Console  # imported here, because these take longer to load than most commands run

    from lacuna_server.client.blocking import connected
    from lacuna_server.client.starting import find_or_start

    wanted = model or DEFAULT_MODEL

    async def located() -> "Address":
        """The service; another one in its place, if it has been killed."""
        return await find_or_start("--model", models.absolute(wanted))

    with ExitStack() as stack:
        engine = stack.enter_context(connected(located))
        wanted = its_model = engine.status().model
        if model and models.absolute(model) != its_model:
            where = f" at {running.url}" if running is not None else ""
            output.say(f"the service{where} has the model {its_model}, so {model} is loaded here")
            stack.close()
            yield None
            return
        with Console(stderr=True).status(f"loading {its_model}") as shown:
            engine.wait(lambda fraction: shown.update(f"loading {its_model} {fraction:.0%}"))
        yield engine, its_model


def load_engine(model: str, report: Callable[[str], None]) -> FillEngine:
    """Loads an engine in this process as the service's worker does, and reports what is loaded; tests replace this."""
    from lacuna_server.wire.frames import Setup
    from lacuna_server.worker import main

    config = msgspec.structs.replace(layers.service(layers.read(None)), model=model)
    return main.load_engine(Setup(config), lambda fraction, what: report(what))
