"""Builds a transformer from tensors, with each linear in the form that its tensors have."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels import gpu
from lacuna_kernels.native import WIDTH, NativeKernels
from lacuna_model.core.errors import WeightsError
from lacuna_model.network.config import ModelConfig, shape_of
from lacuna_model.network.linear import DenseLinear, GpuLinear, Layer, Linear, NativeLinear
from lacuna_model.network.transformer import Rotations, Transformer

# The fused linears of a layer, and the projections whose rows each stacks.
FUSED = {
    "qkv": ("q_proj", "k_proj", "v_proj"),
    "output": ("o_proj",),
    "gate_up": ("gate_proj", "up_proj"),
    "down": ("down_proj",),
}

State = Mapping[str, Tensor]


def layer_of(state: Iterable[str], index: int) -> dict[str, str]:
    """The names of a layer's tensors, by those without its number."""
    prefix = f"layers.{index}."
    return {name.removeprefix(prefix): name for name in state if name.startswith(prefix)}


def fuse_layer(layer: State) -> dict[str, Tensor]:
    """A layer's tensors, named without its number, with its projections stacked according to :data:`FUSED`."""
    fused = {name: layer[name] for name in layer if "proj" not in name}
    for name, parts in FUSED.items():
        for suffix in ("", ".bias"):
            present = [layer[part + suffix] for part in parts if part + suffix in layer]
            if len(present) == len(parts):
                fused[name + suffix] = torch.cat(present)
    return fused


def fuse(state: State, config: ModelConfig) -> dict[str, Tensor]:
    """The tensors of a checkpoint with the projections of each layer stacked."""
    fused = {name: state[name] for name in state if not name.startswith("layers.")}
    for index in range(config.num_layers):
        layer = fuse_layer({own: state[name] for own, name in layer_of(state, index).items()})
        fused |= {f"layers.{index}.{name}": tensor for name, tensor in layer.items()}
    if config.tie_embeddings:
        fused["head"] = fused["embedding"]
    return fused


def linear_from(tensors: State, name: str, kernels: NativeKernels | None = None) -> Linear:
    """The linear ``name`` in the form of its tensors.

    On a CPU, 8 and 4 bit run on ``kernels`` where these support them; else 8 bit is widened to float32.
    """
    weight, scale, bias = tensors[name], tensors.get(name + ".scale"), tensors.get(name + ".bias")
    if gpu.reads(weight) and weight.dtype is not torch.float32:
        return GpuLinear(weight, scale, bias)
    if scale is None:
        return DenseLinear(weight, bias)
    if kernels is None or weight.shape[1] % WIDTH:
        return DenseLinear(weight.float() * scale[:, None], bias if bias is None else bias.float())
    if more := -len(weight) % WIDTH:  # outputs without a use, such as those behind an odd vocabulary
        bias = bias if bias is None else F.pad(bias, (0, more))
        wider = NativeLinear(kernels, F.pad(weight, (0, 0, 0, more)), F.pad(scale, (0, more)), bias)
        count = len(weight)  # the weight itself is not kept
        return lambda x: wider(x)[..., :count]
    return NativeLinear(kernels, weight, scale, bias, tensors.get(name + ".blocks"))


def fused_shape(name: str, config: ModelConfig) -> list[int]:
    """The shape [out, in] of a fused linear of a layer."""
    shapes = [shape_of(part, config) for part in FUSED[name]]
    return [sum(rows for rows, _ in shapes), shapes[0][1]]


def check_fused(tensors: State, config: ModelConfig) -> None:
    """Compare fused tensors, in whatever form, with the shapes that the config says. Raises WeightsError.

    A head may have fewer outputs, as that of a model that only drafts.
    """
    shapes = {"final_norm": shape_of("final_norm", config)}
    for index in range(config.num_layers):
        prefix = f"layers.{index}."
        norms = ("attn_norm", "mlp_norm", *(norm for norm in ("q_norm", "k_norm") if prefix + norm in tensors))
        shapes |= {prefix + name: fused_shape(name, config) for name in FUSED}
        shapes |= {prefix + name: shape_of(name, config) for name in norms}
    outputs = num_outputs(tensors)
    shapes["head"] = [min(outputs, config.vocab_size), config.hidden_size]
    if "embedding" in tensors:
        shapes["embedding"] = shape_of("embedding", config)
    elif outputs != config.vocab_size:
        raise WeightsError("the weights have no embedding of every token")
    expected = dict[str, Sequence[int]]()
    for name, (out, *width) in shapes.items():
        rows = out - len(tensors.get(name + ".blocks", ()))
        expected[name] = [rows, *width]
        if name in tensors and tensors[name].dtype in (torch.int8, torch.uint8):
            expected[name + ".scale"] = [rows]
        if name + ".bias" in tensors:
            expected[name + ".bias"] = [out]
    check_shapes("the weights", tensors, expected)


def check_shapes(where: object, tensors: State, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise WeightsError, which names ``where``, for the first of some tensors that is missing or of another shape."""
    for name, shape in shapes.items():
        if name not in tensors:
            raise WeightsError(f"{where}: the tensor {name} is missing")
        if (found := list(tensors[name].shape)) != list(shape):
            raise WeightsError(f"{where}: the tensor {name} has shape {found}, expected {list(shape)}")


def num_outputs(tensors: State) -> int:
    """How many outputs the head has."""
    return sum(len(tensors[name]) for name in ("head", "head.blocks") if name in tensors)


def _embedding(tensors: State, head: Linear, kernels: NativeKernels | None) -> Linear:
    """The lookup of rows by token id: in the table ``embedding``, packed or not, else in the packed ``head``."""
    table = tensors.get("embedding")
    if table is None or table.dtype is torch.uint8:
        packed = head if table is None else linear_from(tensors, "embedding", kernels)
        assert isinstance(packed, NativeLinear)
        return packed.lookup
    return lambda ids: F.embedding(ids, table).float()


def build_transformer(
    config: ModelConfig,
    tensors: State,
    *,
    linear: Callable[[str], Linear] | None = None,
    kernels: NativeKernels | None = None,
) -> Transformer:
    """A transformer over fused ``tensors``; ``linear`` overrides how each linear is made from its name."""
    make = linear or (lambda name: linear_from(tensors, name, kernels))

    def layer(index: int) -> Layer:
        prefix = f"layers.{index}."
        return Layer(
            config=config,
            attn_norm=tensors[prefix + "attn_norm"],
            mlp_norm=tensors[prefix + "mlp_norm"],
            q_norm=tensors.get(prefix + "q_norm"),
            k_norm=tensors.get(prefix + "k_norm"),
            **{name: make(prefix + name) for name in FUSED},
        )

    head = make("head")
    head = replace(head, is_exact=True) if isinstance(head, GpuLinear) else head
    transformer = Transformer(
        config,
        layers=[layer(index) for index in range(config.num_layers)],
        embed=_embedding(tensors, head, kernels),
        final_norm=tensors["final_norm"],
        head=head,
        outputs=num_outputs(tensors),
        rotations=Rotations(config, tensors["final_norm"].device),
    )
    return transformer.on_gpu() if kernels is None else transformer.native(kernels)
