"""The LR tables of all grammars, as they are read from the memory of their wheels."""

import pytest

from lacuna_model.syntax import lr_stacks

from .drive import require


@pytest.mark.parametrize(("name", "version"), [("OLDEST_ABI", 99), ("NEWEST_ABI", 1)])
def test_tables_of_another_layout_are_not_read(monkeypatch: pytest.MonkeyPatch, name: str, version: int) -> None:
    unread = lr_stacks.parse_table.__wrapped__
    assert unread(require("json")) is not None
    monkeypatch.setattr(lr_stacks, name, version)
    assert unread(require("json")) is None
