from pathlib import Path
from typing import get_args

import msgspec
import pytest
from markdown_it import MarkdownIt

from lacuna_server.wire import protocol_page
from lacuna_server.wire.protocol import ErrorCode

COMMITTED = Path(__file__).parents[3] / "server" / "PROTOCOL.md"


def test_the_committed_page_is_up_to_date() -> None:
    """``python -m lacuna_server.wire.protocol_page > server/PROTOCOL.md`` writes the page."""
    assert COMMITTED.read_text("utf-8") == protocol_page.markdown()


@pytest.mark.parametrize("struct", protocol_page.structs(), ids=lambda struct: struct.__name__)
def test_every_field_is_explained(struct: type[msgspec.Struct]) -> None:
    doc = struct.__doc__ or ""
    assert [field.name for field in msgspec.structs.fields(struct) if f"``{field.name}``" not in doc] == []


def test_every_error_code_is_explained() -> None:
    assert list(protocol_page.errors()) == list(get_args(ErrorCode))


def test_links_lead_to_headings() -> None:
    html = protocol_page.html()
    for struct in protocol_page.structs():
        if f'href="#{struct.__name__.lower()}"' in html:
            assert f'id="{struct.__name__.lower()}"' in html
    assert "<table>" in html


def test_tables_have_two_or_three_cells_in_a_row() -> None:
    tokens = MarkdownIt().enable("table").parse(protocol_page.markdown())
    rows = [tokens[at:] for at, token in enumerate(tokens) if token.type == "tr_open"]
    for row in rows:
        end = next(at for at, token in enumerate(row) if token.type == "tr_close")
        assert sum(token.type in ("td_open", "th_open") for token in row[:end]) in (2, 3)
