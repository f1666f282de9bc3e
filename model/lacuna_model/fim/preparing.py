"""Turns a GGUF file's weights into the 8-bit form that passes read, a layer at a time."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels.native import WIDTH, NativeKernels
from lacuna_model.assembly import State, fuse
from lacuna_model.linear import quantize_rows
from lacuna_model.smoothing import SmoothedLayers
from lacuna_model.weights import GgufFile


def prepared(
    file: GgufFile,
    calibration: Sequence[int],
    kernels: NativeKernels | None,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the model under its name: linears as codes and scales, packed where ``kernels`` read them.

    The states of the ``calibration`` tokens say which channels are large. Where embedding and head are one table it
    is there once, as the packed head; torch's own operators want both. ``advance`` hears how many layers are done, of
    how many.
    """
    state, config = file.state(), file.config()
    embedding = state["embedding"]
    layers = SmoothedLayers(config, F.embedding(torch.tensor([list(calibration)]), embedding))
    yield from _quantized("head", embedding if config.tie_embeddings else state["head"], kernels)
    if not packable(embedding, kernels):
        yield "embedding", embedding.half()
    elif not config.tie_embeddings:
        yield from _quantized("embedding", embedding, kernels)
    del embedding
    single = msgspec.structs.replace(config, num_layers=1, tie_embeddings=False)
    for index, own in enumerate(_ahead(partial(_layer, state), config.num_layers)):
        advance(index, config.num_layers)
        fused = {name.removeprefix("layers.0."): tensor for name, tensor in fuse(own, single).items()}
        for name, tensor in layers.smooth(fused).items():
            if tensor.ndim == 2:
                yield from _quantized(f"layers.{index}.{name}", tensor, kernels)
            else:
                yield f"layers.{index}.{name}", tensor
    advance(config.num_layers, config.num_layers)
    yield "final_norm", state["final_norm"]


def _layer(state: State, index: int) -> dict[str, Tensor]:
    """One layer's tensors, as if it were the first."""
    prefix = f"layers.{index}."
    return {f"layers.0.{name.removeprefix(prefix)}": state[name] for name in state if name.startswith(prefix)}


def _ahead(read: Callable[[int], dict[str, Tensor]], count: int) -> Iterator[dict[str, Tensor]]:
    """What ``read`` returns for 0 to ``count``, the next one read in another thread meanwhile: half the time."""
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(read, 0)
        for index in range(count):
            found = following.result()
            if index + 1 < count:
                following = thread.submit(read, index + 1)
            yield found


def packable(weight: Tensor, kernels: NativeKernels | None) -> bool:
    """Whether there are kernels that take a weight of this shape."""
    return kernels is not None and not any(size % WIDTH for size in weight.shape)


def _quantized(name: str, weight: Tensor, kernels: NativeKernels | None) -> Iterator[tuple[str, Tensor]]:
    codes, scale = quantize_rows(weight)
    yield name, kernels.packed(codes) if kernels is not None and packable(weight, kernels) else codes
    yield f"{name}.scale", scale
