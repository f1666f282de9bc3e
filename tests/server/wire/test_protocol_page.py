from pathlib import Path

from lacuna_server.wire import protocol_page

COMMITTED = Path(__file__).parents[3] / "server" / "PROTOCOL.md"


def test_the_committed_page_is_up_to_date() -> None:
    """``python -m lacuna_server.wire.protocol_page > server/PROTOCOL.md`` writes the page."""
    assert COMMITTED.read_text("utf-8") == protocol_page.markdown()
