"""Which device a model runs on."""

import torch

from lacuna_model.errors import DeviceError

KINDS = ("cpu", "cuda")


def choose_device(wanted: str = "") -> torch.device:
    """The device ``wanted``, as in ``cpu``, ``cuda`` or ``cuda:1``; "" takes CUDA where there is one, else the CPU.

    Raises DeviceError where there is none of that name here.
    """
    if not wanted:
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = None
    if device is None or device.type not in KINDS:
        raise DeviceError(f"no device is called {wanted!r}; use cpu, cuda or, where there are several, cuda:1")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise DeviceError(f"there is no {wanted} that torch can use here; use cpu, or see `lacuna doctor`")
    return device
