from pathlib import Path

import pytest

import lacuna_model.train as home
from lacuna_model.errors import RequestError
from lacuna_model.train.recipe import Recipe, read_recipe


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text('{"train": {"rank": 7}, "samples": {"block_sizes": [8, 16]}}')
    recipe = read_recipe(file)
    assert (recipe.train.rank, recipe.samples.block_sizes) == (7, (8, 16))
    assert recipe.loss == Recipe().loss


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "truncated"),
        ('{"train": {"rnk": 7}}', "rnk"),
        ('{"loss": {"guided": "a"}}', "guided"),
        (None, "No such file"),
    ],
    ids=["cut", "unknown-key", "wrong-type", "missing"],
)
def test_a_bad_recipe_is_named(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "recipe.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(RequestError, match=rf"recipe\.json: not a recipe: .*{message}"):
        read_recipe(file)


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_recipes_that_ship_have_room_for_every_block_size(name: str) -> None:
    samples = read_recipe(Path(home.__path__[0], f"{name}.json")).samples
    assert all(samples.gaps_of(size) >= 1 for size in samples.block_sizes)
    # Fused attention wants rows of scores in eights.
    assert samples.context % 8 == samples.slots % 8 == samples.rows % 8 == 0
