from pathlib import Path

from lacuna_server.wire import settings_page

COMMITTED = Path(__file__).parents[3] / "server" / "CONFIGURATION.md"


def test_the_committed_page_is_up_to_date() -> None:
    """``python -m lacuna_server.wire.settings_page > server/CONFIGURATION.md`` writes it."""
    assert COMMITTED.read_text("utf-8") == settings_page.markdown()
