import pytest
from rich.table import Table

from lacuna_model.commands import output


@pytest.mark.parametrize("width", [20, 60, 100])
def test_a_table_cuts_no_cell(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    table = Table(box=None, pad_edge=False)
    for heading in ("NAME", "MODEL", "SIZE"):
        table.add_column(heading, no_wrap=True)
    table.add_row("qwen2.5-coder-0.5b", "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, from a list", "491 MB")
    output.print_table(table)
    shown = capsys.readouterr().out
    assert "qwen2.5-coder-0.5b" in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
