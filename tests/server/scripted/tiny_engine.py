"""A real engine with the tiny random model, for a worker process."""

from collections.abc import Callable

import torch._prims.rng_prims  # noqa: F401  # what the worker leaves out of torch, and generators need
from tests.model.fim import tiny_fim

from lacuna_model.engine import Engine
from lacuna_server.wire.frames import Setup


def load(_setup: Setup, _report: Callable[[float, str], None]) -> Engine:
    """The engine."""
    return Engine(tiny_fim.loaded())
