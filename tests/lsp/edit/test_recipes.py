from tests.lsp.editor import Editor


async def test_the_recipes_of_the_language_are_listed_with_their_number_of_places(editor: Editor) -> None:
    await editor.begin("print('a')\nprint('b')\n\n\ndef add(a: int) -> int:\n    return a\n", ready=False)
    answer = await editor.do("recipes")
    found = {recipe["name"]: recipe for recipe in answer["recipes"]}
    assert found["logging"]["summary"] == "replace print calls by logging calls"
    assert {name: recipe["places"] for name, recipe in found.items()} == {
        "annotations": 0,
        "arms": 0,
        "docstrings": 1,
        "logging": 2,  # the import that the recipe adds does not count as a place
        "parameter": None,
        "test-bodies": 0,
    }
    assert set(found["parameter"]["settings"]) == {"function", "parameter", "value"}


async def test_a_file_without_a_grammar_has_no_recipes_and_a_huge_file_has_no_counts(editor: Editor) -> None:
    await editor.initialize(ready=False)
    editor.open("print('a')\n", name="notes.md", language="markdown")
    assert await editor.do("recipes") == {"recipes": []}
    editor.open("print('a')\n" * 50_000)
    answer = await editor.do("recipes")
    assert {recipe["places"] for recipe in answer["recipes"]} == {None}
