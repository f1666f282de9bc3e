import json
from pathlib import Path

import pytest
from tests.model import checkpoints, tiny
from tokenizers import Tokenizer as BpeTokenizer

from lacuna_model.core.errors import LacunaError, ModelNotFoundError, WeightsError
from lacuna_model.loading.checkpoint import Checkpoint

TEXTS = [tiny.CODE, "naïve = '日本'\r\n\tx\n\n", "e\u0301 is not é", "<|mask|> is text here", "   \n  12345 I'm"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "model"


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_encoded_and_decoded_without_a_change(folder: Path, text: str) -> None:
    checkpoints.write(folder, "Dream")
    tokenizer = Checkpoint(folder).tokenizer
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not tokenizer.special_ids & set(ids)
    assert tokenizer.vocab_size == checkpoints.CONFIG.vocab_size
    assert tokenizer.eog_id == checkpoints.END


def test_vocabulary_and_merges_are_read_if_there_is_no_tokenizer_file(folder: Path) -> None:
    checkpoints.write(folder, "Dream")
    data = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(data["vocab"]))
    merges = ["".join(f"{left} {right}\n") for left, right in data["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(merges))
    tokenizer = Checkpoint(folder).tokenizer
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert checkpoints.MASK in tokenizer.special_ids


def test_each_fault_of_a_checkpoint_has_its_own_error(folder: Path) -> None:
    def refused(kind: type[LacunaError], match: str) -> None:
        with pytest.raises(kind, match=match):
            Checkpoint(folder).state()

    folder.mkdir()
    refused(ModelNotFoundError, r"there is no config\.json")
    checkpoints.write(folder, "Dream", model_type="bert")
    refused(WeightsError, "holds a 'bert' model; known are Dream, llada")
    checkpoints.write(folder, "Dream", rope_scaling={"type": "yarn"})
    refused(WeightsError, "rotary positions")
    checkpoints.write(folder, "Dream", hidden_size=None)
    refused(WeightsError, r"config\.json lacks 'hidden_size'")
    checkpoints.write(folder, "Dream")
    first, second = sorted(folder.glob("*.safetensors"))
    first.write_bytes(first.read_bytes()[:100])
    refused(WeightsError, r"model-00001-of-00002\.safetensors is damaged")
    first.unlink()
    refused(WeightsError, "lacks the tensor model")
    second.unlink()
    refused(ModelNotFoundError, r"there is no \.safetensors file")


def test_a_tokenizer_of_another_kind_is_refused(folder: Path) -> None:
    checkpoints.write(folder, "Dream")
    bpe = BpeTokenizer.from_file(str(folder / "tokenizer.json"))
    data = json.loads(bpe.to_str())
    data["model"] |= {"vocab": {"▁": 0}, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(WeightsError, match="no byte-level BPE"):
        _ = Checkpoint(folder).tokenizer
