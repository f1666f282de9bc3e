"""Fits the coefficients of logistic models to few observations."""

from collections.abc import Callable

import torch
from torch import Tensor

# The L2 penalty on all coefficients but the constant.
SHRINKAGE = 1e-3


def fewest_nats(size: int, loss: Callable[[Tensor], Tensor]) -> tuple[float, ...]:
    """Returns the ``size`` coefficients with the least ``loss``; the first one is the constant."""
    coefficients = torch.zeros(size, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([coefficients], max_iter=200, line_search_fn="strong_wolfe")

    def step() -> Tensor:
        optimizer.zero_grad()
        value = loss(coefficients) + SHRINKAGE * coefficients[1:].square().sum()
        value.backward()  # type: ignore[no-untyped-call]  # untyped in torch
        return value

    optimizer.step(step)  # type: ignore[no-untyped-call]  # untyped in torch
    return tuple(round(value, 4) for value in coefficients.tolist())
