import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from tests.model import gguf_files
from tests.model.llama import shapes
from tests.server.cli.conftest import run

from lacuna_kernels import compiling, gpu, native
from lacuna_model.hub import models
from lacuna_server.cli import doctor as checks


def test_the_report_names_problems_and_remedies(cache: Path) -> None:
    for model, problem, mend in (
        ("nosuch", "unknown model 'nosuch' (LACUNA_MODEL names it)", "qwen2.5-coder-1.5b"),
        ("qwen2.5-coder-0.5b", "is not on this machine", "run: lacuna models pull qwen2.5-coder-0.5b"),
    ):
        ended = run("doctor", "--json", LACUNA_MODEL=model)
        found = {check["name"]: check for check in json.loads(ended.stdout)["checks"]}
        assert (ended.returncode, found["model"]["state"]) == (1, "fail")
        assert problem in found["model"]["detail"]
        assert mend in found["model"]["mend"]
        assert {found[name]["state"] for name in ("python", "torch", "tokenizer", "gguf", "grammar", "cache")} == {"ok"}


def test_a_gpu_has_additional_checks(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "H100")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(gpu, "triton_failure", lambda: "RuntimeError: Failed to find C compiler")
    found = {check.name: check for check in checks.run_all()}
    assert found["device"].detail == "cuda: H100"
    assert (found["triton"].state, "find C compiler" in found["triton"].detail) == ("warn", True)
    assert "gcc" in found["triton"].mend


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
