import json
from pathlib import Path

import pytest
from tests.benchmarks.held_out.main import held_out_main
from tests.benchmarks.held_out.measure import ALL
from tests.benchmarks.held_out.texts import HeldOut, find_held_out
from tests.benchmarks.tests.fakes import write_llama_cpp
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim

from lacuna_model.backends import readers
from lacuna_model.core.errors import RequestError
from lacuna_model.tokens.tokenizer import Tokenizer
from training.packages import CorpusError
from training.stored import Document, DocumentWriter

TOKENIZER = Tokenizer(tiny_fim.VOCABULARY)
GO = "package a\n\n// A note\n" + "".join(
    f"func f{i}(n int) int {{\n\tvalue := n * {i}\n\treturn value + 1\n}}\n\n" for i in range(12)
)
PACKAGE = "@us/shop"  # a scoped name, as in npm


@pytest.fixture
def files(tmp_path: Path) -> dict[str, HeldOut]:
    texts = {"python": [2 * tiny.CODE, 2 * tiny.CODE.replace("Account", "Ledger")], "go": [GO, GO[:-3], "package b\n"]}
    for language, own in texts.items():
        with DocumentWriter(tmp_path / language / "held_out.jsonl.zst") as writer:
            for text in own:
                writer.write(Document(PACKAGE, "1", "MIT", "its own path", language, text))
    found = find_held_out(tmp_path)
    return {language: HeldOut(path, language) for language, path in found.items()}


@pytest.mark.usefixtures("files")
def test_a_fim_model_is_compared_with_llama_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "load", lambda _: tiny_fim.loaded())
    monkeypatch.syspath_prepend(write_llama_cpp(tmp_path / "packages"))
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    gguf.with_suffix(".says").write_text(json.dumps([*TOKENIZER.encode("return value + 1"), TOKENIZER.eog_id]))
    found = held_out_main(tmp_path, str(gguf), cases=1, records=tmp_path / "records")
    assert found.question.languages == ("go", "python")
    assert {name: list(rows) for name, rows in found.fills.items()} == {
        name: [ALL, "go", "python"] for name in ("lacuna", "llama.cpp")
    }
    peer = found.fills["llama.cpp"][ALL][ALL]
    assert (peer.cases, peer.gaps) == (2, 2)
    assert peer.similarity > found.fills["lacuna"][ALL][ALL].similarity  # Lacuna's tiny model is random
    asked = [json.loads(line)["prompt"] for line in gguf.with_suffix(".log").read_text().splitlines()[1:]]
    assert {(prompt[0], prompt[-1]) for prompt in asked} == {(tiny_fim.FIM.prefix, tiny_fim.FIM.middle)}
    again = held_out_main(tmp_path, str(gguf), engines=["llama.cpp"], cases=1, records=tmp_path / "records")
    assert again == found  # recorded cases are not filled again


def test_bad_input_is_named(files: dict[str, HeldOut], tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"no held-out files here; `python -m training corpus` builds the corpus"):
        find_held_out(tmp_path / "none")
    with pytest.raises(RequestError, match=r"no held-out files of 'ada'; there are go, python"):
        find_held_out(tmp_path, ["ada"])
    file = tmp_path / "go" / "held_out.jsonl.zst"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CorpusError, match=r"go/held_out\.jsonl\.zst: the corpus file is damaged"):
        HeldOut(file, "go")
