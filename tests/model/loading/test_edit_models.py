from pathlib import Path

import pytest
from tests.model import gguf_files

from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.loading.edit_models import made_for_edits
from lacuna_model.next_edit.blocks import as_block


@pytest.mark.parametrize(
    ("name", "fields", "made"),
    [
        ("a.gguf", {"general.name": "Sweep Next Edit 1.5B"}, True),
        ("a.gguf", {"general.finetune": "sweep-next-edit-v2"}, True),
        ("sweep-next-edit-0.5b.q8_0.gguf", {}, True),
        ("a.gguf", {"general.name": "Qwen2.5 Coder 0.5B Instruct"}, False),
        ("a.gguf", {}, False),
    ],
)
def test_a_model_for_next_edits_is_known_by_its_metadata_or_its_name(
    tmp_path: Path, name: str, fields: dict[str, str], made: bool
) -> None:
    assert made_for_edits(gguf_files.write_fim(tmp_path / name, fields=fields)) is made


def test_a_damaged_file_and_a_folder_are_none(tmp_path: Path) -> None:
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF")
    assert not made_for_edits(tmp_path / "damaged.gguf")
    assert not made_for_edits(tmp_path)


def test_an_engine_with_such_a_model_rewrites_in_its_format(tmp_path: Path) -> None:
    file = gguf_files.write_fim(tmp_path / "tiny.gguf", fields={"general.name": "Sweep Next-Edit"})
    engine = Engine.load(str(file), threads=1)
    assert engine.follows_edits
    asked = InfillRequest(
        "a = 1\nb = 2\n",
        (Region(6, 12, rewrite=True, max_tokens=20),),
        path="a.py",
        snippets=(as_block("a.py", "a = 0", "a = 1"),),
    )
    result = engine.fill(asked)
    assert result.text.startswith("a = 1\n")
    assert result.status in ("ok", "no_valid_fill")
    assert result.stats.nfe > 0
