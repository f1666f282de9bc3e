"""The device and the threads that a model runs with."""

import torch

from lacuna_kernels import gpu
from lacuna_model.core.errors import DeviceError
from lacuna_model.hub import machine

KINDS = ("cpu", "cuda", "mps")
HOST = torch.device("cpu")


def choose_device(wanted: str = "") -> torch.device:
    """The device ``wanted``, as in ``cpu``, ``cuda:1`` or ``mps``; "" takes CUDA where available, else the CPU.

    Raises DeviceError where this machine has no such device.
    """
    if not wanted:
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = None
    if device is None or device.type not in KINDS:
        raise DeviceError(f"no device is called {wanted!r}; use cpu, cuda, mps or, where there are several, cuda:1")
    missing = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if missing or (device.type == "mps" and not torch.backends.mps.is_available()):
        raise DeviceError(f"there is no {wanted} that torch can use here; use cpu, or see `lacuna doctor`")
    return HOST if device.type == "cpu" else device


def default_precision(device: torch.device, *, drafts: bool = False) -> str:
    """``bfloat16``, but ``int8`` for a model that only ``drafts`` for another one where a GPU has kernels for that."""
    return "int8" if drafts and gpu.runs_on(device) else "bfloat16"


def check_eight_bit(device: torch.device) -> None:
    """Raise DeviceError where keys and values cannot be in 8 bit: our kernels for GPUs alone read them so."""
    why = gpu.triton_failure() if gpu.runs_on(device) else f"this is {device.type}"
    if why:
        raise DeviceError(f"keys and values in 8 bit need a CUDA GPU with Triton ({why})")


def choose_threads() -> int:
    """Threads for a forward pass: the cores that this process may use, at most eight."""
    return max(1, min(8, machine.num_cores()))
