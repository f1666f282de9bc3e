from pathlib import Path

import pytest

from lacuna_server.wire import layers, settings_page
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.settings import Settings, properties

COMMITTED = Path(__file__).parents[3] / "server" / "CONFIGURATION.md"


def test_the_committed_page_is_up_to_date() -> None:
    """``python -m lacuna_server.wire.settings_page > server/CONFIGURATION.md`` writes it."""
    assert COMMITTED.read_text("utf-8") == settings_page.markdown()


def test_the_page_names_every_key_once() -> None:
    lines = settings_page.markdown().splitlines()
    assert [name for name in layers.KEYS if sum(line.startswith(f"| `{name}` |") for line in lines) != 1] == []


@pytest.mark.parametrize("struct", [Settings, ServerConfig], ids=lambda struct: struct.__name__)
def test_every_key_has_a_default_and_a_meaning(struct: type) -> None:
    assert [name for name, about in properties(struct).items() if not {"default", "description"} <= about.keys()] == []
