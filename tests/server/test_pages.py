from pathlib import Path

import pytest

import pages
from lacuna_server.http.addresses import SHAPES


@pytest.mark.parametrize("file", pages.PAGES, ids=lambda file: file.name)
def test_the_page_in_the_repository_is_the_one_of_the_code(file: Path) -> None:
    """``python server/pages.py`` writes it."""
    assert file.read_text("utf-8") == pages.PAGES[file]()


def test_the_page_of_http_has_every_field_that_a_shape_honours() -> None:
    told = pages.http_page()
    own = {"prompt", "suffix", "messages", "input_prefix", "input_suffix", "input_extra"}
    for shape in SHAPES:
        for name in {*shape.body.__struct_fields__} - own:
            assert f"`{name}`" in told or f"`{name}." in told, name
