"""Which device a model runs on."""

import pytest
import torch

from lacuna_model.core.errors import DeviceError
from lacuna_model.network.devices import HOST, choose_device, default_precision


@pytest.fixture
def count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: request.param)


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize(
    ("count", "wanted", "chosen"),
    [(0, "", "cpu"), (1, "", "cuda"), (1, "cpu", "cpu"), (1, "cuda", "cuda"), (2, "cuda:1", "cuda:1")],
    indirect=["count"],
)
def test_the_wanted_device_is_chosen_and_else_the_fastest(wanted: str, chosen: str) -> None:
    assert choose_device(wanted) == torch.device(chosen)


def test_apple_s_gpu_is_used_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("mps") == torch.device("mps")
    assert default_precision(choose_device("mps"), drafts=True) == "bfloat16"
    assert choose_device("") == HOST


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize(
    ("count", "wanted"), [(0, "cuda"), (1, "cuda:1"), (1, "gpu"), (1, "meta"), (1, "mps")], indirect=["count"]
)
def test_a_missing_device_is_an_error_of_one_line(wanted: str) -> None:
    with pytest.raises(DeviceError, match=wanted) as caught:
        choose_device(wanted)
    assert "\n" not in str(caught.value)
