"""A second device, pretended: tensors in ordinary memory that mind whether they meet others as on a GPU they would."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

# No tensor says so of itself: only what is asked for under the mode below does.
ELSEWHERE = torch.device("cpu", 0)
# A GPU takes indices and copies from ordinary memory, and a number from anywhere.
MIXING = {Tensor.__getitem__, Tensor.__setitem__, Tensor.copy_, Tensor.to}
# What brings tensors back.
LEAVING = {Tensor.tolist, Tensor.item, Tensor.__float__, Tensor.__int__, Tensor.__bool__, Tensor.numpy}


class Mismatch(Exception):
    """Tensors of two devices in one operation, or one of the other device read as if it were not."""


def placed(value: Any) -> Any:
    """``value`` with its tensors elsewhere."""

    def mark(tensor: Tensor) -> Tensor:
        tensor.is_elsewhere = True  # type: ignore[attr-defined]
        return tensor

    return tree_map_only(Tensor, mark, value)


class Elsewhere(TorchFunctionMode):
    """While it lasts, tensors made on ``ELSEWHERE`` are told from others."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        there = [getattr(tensor, "is_elsewhere", False) for tensor in tensors]
        wanted = self._wanted(func, args, kwargs)
        if func == Tensor.device.__get__:  # type: ignore[attr-defined]
            return ELSEWHERE if there[0] else func(*args, **kwargs)
        if func is Tensor.numpy and there[0] and not kwargs.get("force"):
            raise Mismatch("numpy() of a tensor elsewhere")
        numbers = [tensor.dim() == 0 for tensor in tensors]
        if func not in MIXING and any(there) and any(map(lambda t, n: not t and not n, there, numbers)):
            raise Mismatch(f"{func} of {[(tuple(t.shape), at) for t, at in zip(tensors, there, strict=True)]}")
        result = func(*args, **kwargs)
        if func in LEAVING:
            return result
        if wanted and tensors and result is tensors[0] and not there[0]:
            result = result.view_as(result)  # in ordinary memory `to` had nothing to do; its argument stays where it is
        stays = there[0] if func in MIXING and there else any(there)
        return placed(result) if (stays if wanted is None else wanted) else result

    @staticmethod
    def _wanted(func: Any, args: Any, kwargs: Any) -> bool | None:
        """Whether a call asks for a tensor elsewhere; None where it does not say."""
        asked: Iterator[Any] = iter([kwargs.get("device"), *(args[1:2] if func is Tensor.to else ())])
        for device in asked:
            if isinstance(device, torch.device):
                return device == ELSEWHERE
            if isinstance(device, Tensor):
                return getattr(device, "is_elsewhere", False)
        return None
