from pathlib import Path

import msgspec
import pytest
import torch

from lacuna_model.errors import WeightsError
from lacuna_model.weights import GgufFile

from . import gguf_files, tiny


@pytest.fixture
def file(tmp_path: Path) -> GgufFile:
    return GgufFile(gguf_files.write(tmp_path / "tiny.gguf"))


def test_the_config_comes_back(file: GgufFile) -> None:
    config = file.config()
    # GGUF keeps real numbers in single precision, and the size of a block is ours to say.
    assert config.rms_norm_eps == pytest.approx(tiny.CONFIG.rms_norm_eps)
    expected = msgspec.structs.replace(tiny.CONFIG, rms_norm_eps=config.rms_norm_eps, block_size=config.block_size)
    assert config == expected


def test_the_vocabulary_comes_back(file: GgufFile) -> None:
    assert file.vocabulary() == tiny.VOCABULARY


def test_the_weights_come_back_in_our_rotary_order(file: GgufFile) -> None:
    got, expected = file.state(), tiny.state()
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[name], expected[name]) for name in expected)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"no weights at all" * 100], ids=["empty", "cut", "garbage"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    with pytest.raises(WeightsError, match=r"bad\.gguf is not a readable GGUF file .*lacuna models pull"):
        GgufFile(tmp_path / "bad.gguf")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_file_is_refused(tmp_path: Path, share: float) -> None:
    whole = gguf_files.write(tmp_path / "tiny.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(WeightsError, match=r"cut\.gguf"):
        GgufFile(tmp_path / "cut.gguf").state()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"none\.gguf"):
        GgufFile(tmp_path / "none.gguf")


def test_a_model_of_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"'gpt2' model"):
        GgufFile(gguf_files.write(tmp_path / "tiny.gguf", architecture="gpt2"))


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    file = GgufFile(gguf_files.write(tmp_path / "tiny.gguf", without="blk.1.ffn_up.weight"))
    with pytest.raises(WeightsError, match=r"blk\.1\.ffn_up\.weight"):
        file.state()


def test_the_real_file_is_what_it_is(gguf: GgufFile) -> None:
    config = gguf.config()
    assert (config.num_layers, config.hidden_size, config.num_heads, config.num_kv_heads) == (30, 576, 9, 3)
    assert (config.vocab_size, config.max_positions, config.tie_embeddings) == (49152, 8192, True)
