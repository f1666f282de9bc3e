import json
from pathlib import Path

import pytest
from tests.benchmarks.held_out.cases import HeldOut, find_held_out, held_out_files
from tests.benchmarks.held_out.measure import measure, open_records, rows
from tests.benchmarks.tasks.engines import chosen
from tests.benchmarks.tests.fakes import write_llama_cpp
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim

from lacuna_model import readers
from lacuna_model.core.errors import RequestError
from lacuna_model.tokenizer import Tokenizer
from training.packages import CorpusError
from training.stored import Document, DocumentWriter

TOKENIZER = Tokenizer(tiny_fim.VOCABULARY)
GO = "package a\n\n// A note\n" + "".join(
    f"func f{i}(n int) int {{\n\tvalue := n * {i}\n\treturn value + 1\n}}\n\n" for i in range(12)
)
PACKAGE = "@us/shop"  # a scoped name, as in npm


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = {"python": [2 * tiny.CODE, 2 * tiny.CODE.replace("Account", "Ledger")], "go": [GO, GO[:-3], "package b\n"]}
    for language, own in texts.items():
        with DocumentWriter(tmp_path / language / "held_out.jsonl.zst") as writer:
            for text in own:
                writer.write(Document(PACKAGE, "1", "MIT", "its own path", language, text))
    return tmp_path


def test_a_fim_model_is_compared_with_llama_cpp(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "load", lambda _: tiny_fim.loaded())
    monkeypatch.syspath_prepend(write_llama_cpp(tmp_path / "packages"))
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    gguf.with_suffix(".says").write_text(json.dumps([*TOKENIZER.encode("return value + 1"), TOKENIZER.eog_id]))
    files = held_out_files(corpus)
    for names in ([], ["llama.cpp"]):  # what is recorded is not filled again
        with open_records(tmp_path / "records", "model", files, 1, 0) as records:
            found = measure(files, 1, 0, chosen(str(gguf), names), TOKENIZER.encode, records)
        assert [(one.language, one.engine) for one in found] == [
            (language, engine) for language in ("go", "python") for engine in ("lacuna", "llama.cpp")
        ]
    figures = {(row["engine"], row["gaps of"]): row for row in rows(found)}
    assert set(figures) == {(engine, of) for engine in ("lacuna", "llama.cpp") for of in ("line", "go", "python")}
    peer, own = figures["llama.cpp", "line"], figures["lacuna", "line"]
    assert peer["n"] == 2
    assert peer["similarity"] > own["similarity"]  # Lacuna's tiny model is random


def test_bad_input_is_named(corpus: Path) -> None:
    with pytest.raises(RequestError, match=r"no held-out files here; `python -m training corpus` builds the corpus"):
        find_held_out(corpus / "none")
    with pytest.raises(RequestError, match=r"no held-out files of 'ada'; there are go, python"):
        find_held_out(corpus, ["ada"])
    file = corpus / "go" / "held_out.jsonl.zst"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CorpusError, match=r"go/held_out\.jsonl\.zst: the corpus file is damaged"):
        HeldOut(file, "go")
