from pathlib import Path

import pytest

from lacuna_model import stopping
from lacuna_model.loader import LoadedModel
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.weights import GgufFile

from . import tiny


@pytest.fixture(scope="session")
def model() -> LoadedModel:
    """A tiny random model, both sides, in float32."""
    return tiny.loaded()


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that say the same for ever may do so, as tiny random and scripted ones do."""
    monkeypatch.setattr(stopping, "LEAST_LOOPED", 10_000)


@pytest.fixture(scope="session")
def tokenizer(model: LoadedModel) -> Tokenizer:
    return model.tokenizer


@pytest.fixture(scope="session")
def gguf(gguf_path: Path) -> GgufFile:
    return GgufFile(gguf_path)


@pytest.fixture(scope="session")
def real_tokenizer(gguf: GgufFile) -> Tokenizer:
    return Tokenizer(gguf.vocabulary())
