import pytest

from lacuna_kernels import native
from lacuna_kernels.native import NativeKernels


@pytest.fixture(scope="session", params=native.supported(), ids=lambda instructions: instructions.name)
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NativeKernels:
    return native.build(tmp_path_factory.mktemp("kernels"), instructions=[request.param])
