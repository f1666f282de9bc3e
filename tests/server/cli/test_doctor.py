from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from tests.model import gguf_files
from tests.model.llama import shapes

from lacuna_kernels import compiling, gpu, native
from lacuna_model.hub import models
from lacuna_server.cli import doctor as checks


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def has_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "H100")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))


@pytest.mark.usefixtures("has_gpu")
def test_a_gpu_has_additional_checks(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "triton_failure", lambda: "RuntimeError: Failed to find C compiler")
    found = {check.name: check for check in checks.run_all()}
    assert found["device"].detail == "cuda: H100"
    assert (found["triton"].state, "find C compiler" in found["triton"].detail) == ("warn", True)
    assert "gcc" in found["triton"].mend


def test_an_unknown_model_fails_with_what_names_it_and_the_rest_is_checked(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACUNA_MODEL", "nosuch")
    found = {check.name: check for check in checks.run_all()}
    assert (found["model"].state, found["model"].detail) == ("fail", "unknown model 'nosuch' (LACUNA_MODEL names it)")
    assert "qwen2.5-coder-1.5b" in found["model"].mend
    assert found["cache"].state == "ok"


def test_a_damaged_model_fails_with_the_command_that_repairs_it(cache: Path) -> None:
    file = models.location(models.find(models.DEFAULT_MODEL))
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF")
    check = checks.checked("model")
    assert (check.state, check.mend) == ("fail", "run: lacuna models pull --force qwen2.5-coder-0.5b")
    assert str(file) in check.detail


def test_a_cache_that_cannot_be_written_fails_unless_the_model_is_there(
    cache: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    cache.write_text("")
    check = checks.checked("cache")
    assert (check.state, check.detail) == ("fail", f"{cache} cannot be written to (Not a directory)")
    cache.unlink()
    file = models.location(models.find(models.DEFAULT_MODEL))
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF")
    with full_disk():
        check = checks.checked("cache")
    assert (check.state, check.mend) == ("warn", "set LACUNA_CACHE to a folder elsewhere")
    assert check.detail == f"{cache} cannot be written to (File too large), so every start takes a few seconds longer"
    assert checks.checked("cache").state == "ok"


def test_a_package_that_does_not_load_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise OSError(f"{name}: undefined symbol")

    monkeypatch.setattr(checks.importlib, "import_module", broken)
    for name in ("torch", "tokenizer", "gguf", "grammar", "device", "kernels"):
        check = checks.checked(name)
        assert (check.state, check.mend) == ("fail", checks.REINSTALL)


def test_a_machine_without_a_compiler_is_a_warning(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "supported", lambda: [compiling.AVX2])
    monkeypatch.setenv("PATH", "")
    check = checks.checked("kernels")
    assert (check.state, check.mend) == ("warn", "install gcc")
    assert "no C compiler" in check.detail
    monkeypatch.setattr(native, "supported", lambda: [])
    assert checks.checked("kernels").state == "ok"


def test_the_reader_of_a_file_is_named_with_its_devices(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = gguf_files.write_fim(tmp_path / "own.gguf"), shapes.write(tmp_path / "other.gguf", "granite")
    for path, said in ((own, "own layers"), (other, "libllama")):
        monkeypatch.setenv("LACUNA_MODEL", str(path))
        found = checks.checked("reader")
        assert found.state == "ok"
        assert said in found.detail
    assert "CPU" in found.detail
