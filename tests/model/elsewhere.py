"""A pretended second device. Its tensors lie in ordinary memory, but mixing them with others fails as on a GPU."""

from collections.abc import Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

# No real tensor has this device. Under the mode below, marked tensors report it.
ELSEWHERE = torch.device("cpu", 0)
# A GPU tensor takes indices and copies from ordinary memory, and a scalar from anywhere.
MIXING = {Tensor.__getitem__, Tensor.__setitem__, Tensor.copy_, Tensor.to}
# Calls that bring values back to ordinary memory.
LEAVING = {Tensor.tolist, Tensor.item, Tensor.__float__, Tensor.__int__, Tensor.__bool__, Tensor.numpy}


class Mismatch(Exception):
    """An operation mixes tensors of two devices, or reads one of the second device as if it were in ordinary memory."""


def placed(value: Any) -> Any:
    """``value`` with its tensors marked as on the second device."""

    def mark(tensor: Tensor) -> Tensor:
        if tensor.dtype is torch.float64:
            raise Mismatch("the second device has no float64, as Apple's GPUs have none")
        tensor.is_elsewhere = True  # type: ignore[attr-defined]
        return tensor

    return tree_map_only(Tensor, mark, value)


class Elsewhere(TorchFunctionMode):
    """While it is active, tensors made on ``ELSEWHERE`` are marked and checked."""

    def __enter__(self) -> Self:
        """Let parameters of modules, which torch makes without asking the mode, have the mark of their tensors."""
        self._new = plain = nn.Parameter.__new__

        def made(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
            found = plain(cls, data, requires_grad)
            return placed(found) if getattr(data, "is_elsewhere", False) else found

        nn.Parameter.__new__ = made  # type: ignore[method-assign]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        nn.Parameter.__new__ = self._new  # type: ignore[method-assign]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        there = [getattr(tensor, "is_elsewhere", False) for tensor in tensors]
        wanted = self._wanted(func, args, kwargs)
        if func == Tensor.device.__get__:  # type: ignore[attr-defined]
            return ELSEWHERE if there[0] else func(*args, **kwargs)
        if func is Tensor.numpy and there[0] and not kwargs.get("force"):
            raise Mismatch("numpy() of a tensor on the second device")
        numbers = [tensor.dim() == 0 for tensor in tensors]
        if func not in MIXING and any(there) and any(map(lambda t, n: not t and not n, there, numbers)):
            raise Mismatch(f"{func} of {[(tuple(t.shape), at) for t, at in zip(tensors, there, strict=True)]}")
        result = func(*args, **kwargs)
        if func in LEAVING:
            return result
        if wanted and tensors and result is tensors[0] and not there[0]:
            result = result.view_as(result)  # `to` returned its argument, which must stay unmarked
        stays = there[0] if func in MIXING and there else any(there)
        return placed(result) if (stays if wanted is None else wanted) else result

    @staticmethod
    def _wanted(func: Any, args: Any, kwargs: Any) -> bool | None:
        """Whether a call asks for a tensor on the second device; None if it names no device."""
        asked: Iterator[Any] = iter([kwargs.get("device"), *(args[1:2] if func is Tensor.to else ())])
        for device in asked:
            if isinstance(device, torch.device):
                return device == ELSEWHERE
            if isinstance(device, Tensor):
                return getattr(device, "is_elsewhere", False)
        return None
