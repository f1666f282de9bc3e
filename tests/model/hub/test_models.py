import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

from lacuna_model.core.errors import WeightsError
from lacuna_model.hub import atomic, models
from lacuna_model.hub.models import ModelInfo
from lacuna_model.loading.weights import GgufReader

WEIGHTS = b"GGUF" + bytes(range(256)) * 16


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    info = replace(models.find(models.DEFAULT_MODEL), name="tiny", size=len(WEIGHTS), sha256=digest)
    monkeypatch.setattr(models, "MODELS", (info,))
    return info


def put(info: ModelInfo, data: bytes) -> Path:
    file = models.location(info)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_a_folder_is_a_model_unless_it_has_the_name_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("dreamon", models.DEFAULT_MODEL):
        (tmp_path / name).mkdir()
        assert models.own(name) is None
        (tmp_path / name / "config.json").write_text("{}")
    assert models.own("dreamon") == models.weights("dreamon") == Path("dreamon")
    assert models.own(models.DEFAULT_MODEL) is None


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Pretends a machine without models, and gives it memory (GB) and cores."""
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path))
    monkeypatch.delenv("LACUNA_MODEL", raising=False)

    def has(free: int, on_gpu: float = 0, cores: int = 2) -> None:
        monkeypatch.setattr(models.machine, "num_cores", lambda: cores)
        monkeypatch.setattr(models.machine, "free_memory", lambda: free << 30)
        monkeypatch.setattr(models.machine, "free_on_gpu", lambda: int(on_gpu * 1e9))

    return has


@pytest.mark.parametrize(
    ("free", "cores", "on_gpu", "line_ms", "chosen", "why"),
    [
        (16, 2, 0, None, models.LARGE_MODEL, "2 cores, 17.2 GB of memory free"),
        (16, 2, 0, 300.0, models.LARGE_MODEL, "2 cores, 17.2 GB of memory free, a line takes 0.30 s"),
        (16, 2, 0, 910.0, models.SMALL_MODEL, "a line of the large one takes 0.91 s here"),
        (3, 8, 0, 300.0, models.SMALL_MODEL, "3.2 GB of memory are free"),
        (16, 1, 0, 300.0, models.SMALL_MODEL, "there is one core"),
        (2, 1, 20, None, "qwen2.5-coder-7b", "a GPU with 20.0 GB of memory free"),
        (2, 1, 8, None, models.LARGE_MODEL, "a GPU with 8.0 GB of memory free"),
        (2, 1, 6, None, models.SMALL_MODEL, "a GPU with 6.0 GB of memory free"),
        (2, 1, 2, None, models.SMALL_MODEL, "there is one core"),
    ],
)
def test_the_default_follows_the_machine(
    computer: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    free: int,
    cores: int,
    on_gpu: float,
    line_ms: float | None,
    chosen: str,
    why: str,
) -> None:
    computer(free, on_gpu, cores)
    monkeypatch.setattr(models, "line_ms", lambda: line_ms)
    assert models.suited() == models.Choice(chosen, why)


@pytest.mark.parametrize(
    ("words", "chosen"), [("flags : avx avx2", models.LARGE_MODEL), ("flags : avx", models.SMALL_MODEL)]
)
def test_without_fast_products_the_large_model_needs_more_memory(
    computer: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, chosen: str
) -> None:
    computer(6)
    told = tmp_path / "cpuinfo"
    told.write_text(words)
    monkeypatch.setattr(models.machine, "PROCESSORS", told)
    assert models.suited().name == chosen


@pytest.mark.parametrize(
    ("here", "free", "on_gpu", "size"),
    [
        ("", 16, 0, "1.5b"),
        ("0.5b", 16, 0, "0.5b"),
        ("0.5b 1.5b", 16, 0, "1.5b"),
        ("0.5b 1.5b", 3, 0, "0.5b"),
        ("", 3, 0, "0.5b"),
        ("7b", 3, 0, "7b"),  # a start, if a slow one
        ("1.5b 7b", 3, 0, "1.5b"),
        ("1.5b 7b", 3, 80, "7b"),
        ("1.5b", 3, 80, "1.5b"),
    ],
)
def test_where_another_model_than_the_best_is_here_it_is_used(
    computer: Callable[..., None], monkeypatch: pytest.MonkeyPatch, here: str, free: int, on_gpu: int, size: str
) -> None:
    computer(free, on_gpu)
    for one in here.split():
        file = models.location(models.find(f"qwen2.5-coder-{one}"))
        file.parent.mkdir(parents=True)
        file.touch()
    chosen, best = models.default(), models.suited()
    assert chosen.name == f"qwen2.5-coder-{size}"
    if chosen.name != best.name:
        assert f"it is here, and {best.name} is not ({best.why}): lacuna models pull gets that" == chosen.why
    monkeypatch.setenv("LACUNA_MODEL", "other.gguf")
    assert models.default() == models.Choice("other.gguf", "LACUNA_MODEL names it")


def test_the_cache_is_the_users_own_or_as_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LACUNA_CACHE", raising=False)
    assert models.cache_dir() == platformdirs.user_cache_path("lacuna")
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path))
    assert models.location(models.find(models.SMALL_MODEL)).is_relative_to(tmp_path)


def test_the_checksum_of_weights_is_computed_once(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(info, WEIGHTS)
    read: list[Path] = []
    sha256 = atomic.sha256
    monkeypatch.setattr(atomic, "sha256", lambda path: read.append(path) or sha256(path))
    assert models.path(info) == models.path(info) == file
    assert read == [file]
    os.utime(file, ns=(1, 1))
    models.path(info)
    assert read == [file, file]


@pytest.mark.parametrize(
    "data", [WEIGHTS[:-1], WEIGHTS + b"x", WEIGHTS[:-1] + b"x", b""], ids=["short", "long", "changed", "empty"]
)
def test_damaged_weights_name_the_file_and_the_remedy(info: ModelInfo, data: bytes) -> None:
    file = put(info, data)
    with pytest.raises(WeightsError) as caught:
        models.path(info)
    assert str(file) in str(caught.value)
    assert "lacuna models pull --force tiny" in str(caught.value)


@contextmanager
def unreadable(*files: Path) -> Iterator[None]:
    """Takes the right to read files from this user; root, who reads everything, is another user meanwhile."""
    for file in files:
        file.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_weights_that_may_not_be_read_are_not_called_damaged(info: ModelInfo, tmp_path: Path) -> None:
    weights, own = put(info, WEIGHTS), tmp_path / "own.gguf"
    own.write_bytes(WEIGHTS)
    models.path(info)  # its checksum is known from now on
    with unreadable(weights, own):
        for file, read in (
            (weights, lambda: models.path(info)),
            (own, lambda: GgufReader(own)),
        ):
            with pytest.raises(WeightsError) as caught:
                read()
            assert str(caught.value) == f"{file} cannot be read: Permission denied"
        assert models.state(info) == "damaged"
