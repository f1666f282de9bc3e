from pathlib import Path

import pytest
from tests.model import gguf_files

from lacuna_model.core.params import FollowChanges, InfillRequest, PastChange, Region
from lacuna_model.engine import Engine
from lacuna_model.loading.families import EditFormat, edit_format


@pytest.mark.parametrize(
    ("name", "fields", "known"),
    [
        ("a.gguf", {"general.name": "Sweep Next Edit 1.5B"}, "sweep"),
        ("a.gguf", {"general.finetune": "sweep-next-edit-v2"}, "sweep"),
        ("sweep-next-edit-0.5b.q8_0.gguf", {}, "sweep"),
        ("a.gguf", {"general.name": "Zeta 2.1"}, "zeta"),
        ("zed-industries_zeta-2.1-Q4_K_M.gguf", {}, "zeta"),
        ("zeta-2.gguf", {}, None),  # its prompt is another one
        ("a.gguf", {"general.name": "Qwen2.5 Coder 0.5B Instruct"}, None),
        ("a.gguf", {}, None),
    ],
)
def test_a_model_for_next_edits_is_known_by_its_metadata_or_its_name(
    tmp_path: Path, name: str, fields: dict[str, str], known: EditFormat | None
) -> None:
    assert edit_format(gguf_files.write_fim(tmp_path / name, fields=fields)) == known


def test_a_damaged_file_and_a_folder_are_none(tmp_path: Path) -> None:
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF")
    assert edit_format(tmp_path / "damaged.gguf") is None
    assert edit_format(tmp_path) is None


def test_an_engine_with_such_a_model_rewrites_in_its_format(tmp_path: Path) -> None:
    file = gguf_files.write_fim(tmp_path / "tiny.gguf", fields={"general.name": "Sweep Next-Edit"})
    engine = Engine.load(str(file), threads=1)
    assert engine.follows_edits
    asked = InfillRequest(
        "a = 1\nb = 2\n",
        (Region(6, 12, max_tokens=20),),
        path="a.py",
        task=FollowChanges((PastChange("a.py", "a = 0", "a = 1"),)),
    )
    result = engine.fill(asked)
    assert result.text.startswith("a = 1\n")
    assert result.status in ("ok", "no_valid_fill")
    assert result.stats.nfe > 0
