from pathlib import Path

from lacuna_server.http import page
from lacuna_server.http.shapes.table import SHAPES

COMMITTED = Path(__file__).parents[3] / "server" / "HTTP.md"


def test_the_page_in_the_repository_is_the_generated_one() -> None:
    """``python -m lacuna_server.http.page > server/HTTP.md`` writes it."""
    assert COMMITTED.read_text("utf-8") == page.markdown()


def test_the_page_has_every_field_that_a_shape_honours() -> None:
    told = page.markdown()
    own = {"prompt", "suffix", "messages", "input_prefix", "input_suffix", "input_extra"}
    for shape in SHAPES:
        for name in {*shape.body.__struct_fields__} - own:
            assert f"`{name}`" in told or f"`{name}." in told, name
