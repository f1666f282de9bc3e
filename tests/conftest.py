import gc
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import settings
from tests import compiled_once

# All tests, and the programs that they start, use this model on every machine.
os.environ["LACUNA_MODEL"] = "qwen2.5-coder-0.5b"
# No test reads the settings of who runs it.
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="lacuna-config-")
# The programs that tests start keep what they have compiled: hundreds of them import the same modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import atomic, models

# So does pytest itself, which rewrites the modules of tests.
sys.dont_write_bytecode = False

import torch  # noqa: E402 (after lacuna_model, which lets torch's threads sleep while they wait)

# A shell lets its background processes ignore Ctrl-C, and the programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The prepared form of a model with random weights is smaller. Each is of a file in a temporary folder.
TINY_BYTES = 20_000_000

# Without a GPU, Triton interprets its kernels. It reads this variable when it is first imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# Hypothesis sets no deadline for an example, because the machine may be busy.
settings.register_profile("lacuna", deadline=None)
settings.load_profile("lacuna")


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over what is loaded: thousands of tests and torch, which take half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A runtime folder of the tests' own, so that no test uses a service that this user runs."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runtime")
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def cache_folder() -> Iterator[Path]:
    """A cache of the tests' own, beside the user's: what tests prepare evicts nothing that this user has prepared.

    It has the user's downloaded models, and begins with what is prepared of them.
    """
    users = models.cache_dir()
    own = users.with_name(f"{users.name}-tests")
    atomic.make_private(own / "prepared")
    for folder in ("models", "downloads"):
        (users / folder).mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (own / folder).symlink_to(users / folder)
    for file in own.glob("prepared/*.safetensors"):
        with suppress(FileNotFoundError):  # the other process that shares the tests removes them too
            if file.stat().st_size < TINY_BYTES:
                file.unlink()
    for file in users.glob("prepared/*.safetensors"):
        with suppress(FileExistsError, OSError):
            (own / "prepared" / file.name).hardlink_to(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(models.CACHE_VARIABLE, str(own))
        if compiler := compiled_once.install(own / "compiled", "cc", "gcc"):
            patch.setenv("PATH", f"{compiler}{os.pathsep}{os.environ['PATH']}")
        yield own


@pytest.fixture(scope="session")
def coder_path() -> Path:
    """The default model's weights, from `make test`. Without them, tests fail in CI and are skipped elsewhere."""
    try:
        return models.path(models.find(models.DEFAULT_MODEL))
    except LacunaError as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs the model: {error}")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """A context manager in which this process can write only ten bytes to a file."""

    @contextmanager
    def limited() -> Iterator[None]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return limited
