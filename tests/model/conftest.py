import os
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import huggingface_hub
import pytest

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.hub import models
from lacuna_model.llama.loading import load_llama
from lacuna_model.loading.weights import GgufFile
from lacuna_model.tokenizer import Tokenizer

from . import gguf_files
from .fim import tiny_fim


@pytest.fixture(scope="session")
def model() -> LoadedFim:
    """A tiny random model in float32."""
    return tiny_fim.loaded()


@pytest.fixture(scope="session")
def llama_model(tmp_path_factory: pytest.TempPathFactory) -> LoadedFim:
    """The same weights, which libllama reads."""
    file = gguf_files.write_fim(tmp_path_factory.mktemp("llama") / "tiny.gguf")
    return replace(load_llama(file, "tiny", threads=1), costs=tiny_fim.Paying())


@pytest.fixture(params=["own", "libllama"])
def either_model(request: pytest.FixtureRequest) -> LoadedFim:
    """The tiny model by our own layers, then by libllama."""
    found: LoadedFim = request.getfixturevalue("model" if request.param == "own" else "llama_model")
    return found


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the kernels, which are compiled once for all tests."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def cache(tmp_path: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of models, with the kernels."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(models.CACHE_VARIABLE, str(folder))
    folder.mkdir()
    models.kernels_dir().symlink_to(compiled)
    return folder


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only place where pip finds packages. The cache is empty and the hub unreachable."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))

    def no_route(*_: object, **__: object) -> NoReturn:
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", no_route)
    return folder


@pytest.fixture(scope="session")
def tokenizer(model: LoadedFim) -> Tokenizer:
    return model.tokenizer


@pytest.fixture(scope="session")
def gguf(coder_path: Path) -> GgufFile:
    return GgufFile(coder_path)


@pytest.fixture(scope="session")
def real_tokenizer(gguf: GgufFile) -> Tokenizer:
    return Tokenizer(gguf.vocabulary())
