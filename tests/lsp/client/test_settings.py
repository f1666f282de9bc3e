from pathlib import Path

import msgspec
import pytest
from lsprotocol import types
from tests.lsp.editor import Editor, until
from tests.lsp.service import Daemon

from lacuna_lsp.client.settings import Settings, parse
from lacuna_lsp.commands import COMMANDS


def test_without_settings_the_defaults_apply() -> None:
    assert parse(None) == (Settings(), [])
    assert parse({}) == (Settings(), [])


def test_names_are_camel_case_and_may_be_nested_under_lacuna() -> None:
    wanted = Settings(max_tokens=7, disabled_languages=("text",))
    assert parse({"maxTokens": 7, "disabledLanguages": ["text"]}) == (wanted, [])
    assert parse({"lacuna": {"maxTokens": 7, "disabledLanguages": ["text"]}, "other": {}}) == (wanted, [])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"maxTokns": 3}, "unknown setting lacuna.maxTokns"),
        ({"maxTokens": "many"}, "lacuna.maxTokens: Expected `int`, got `str`; the default is 96"),
        ({"maxTokens": 0}, "lacuna.maxTokens: Expected `int` >= 1; the default is 96"),
        ({"multiline": "often"}, "lacuna.multiline: Invalid enum value 'often'; the default is 'auto'"),
        ([1], "the settings are not an object: [1]"),
    ],
)
def test_an_invalid_setting_is_reported_and_its_default_applies(values: object, problem: str) -> None:
    assert parse(values) == (Settings(), [problem])


def test_an_invalid_setting_does_not_affect_the_others() -> None:
    found, problems = parse({"candidates": 2, "colour": "red", "debounce": "no"})
    assert found == Settings(candidates=2)
    assert len(problems) == 2


def test_settings_are_immutable_and_have_defaults() -> None:
    with pytest.raises(AttributeError):
        Settings().enabled = False  # type: ignore[misc]
    assert all(field.default is not msgspec.NODEFAULT for field in msgspec.structs.fields(Settings))


async def test_each_problem_of_the_settings_is_shown_once(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize({"colour": "red"}, ready=False)
    for values in ({"colour": "red"}, {"lacuna": {"colour": "red", "automatic": 1}}):
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(values))
    await until(lambda: len(editor.messages) > 1)
    assert editor.messages == [
        "Lacuna: unknown setting lacuna.colour",
        "Lacuna: lacuna.automatic: Expected `bool`, got `int`; the default is True",
    ]


async def test_settings_are_requested_if_a_change_notification_contains_none(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize()
    editor.open("value = ¦\n")
    editor.client.set_configuration({"enabled": False}, section="lacuna")
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    for _ in range(500):
        if await editor.suggest() == []:
            return
        editor.type("x")
    raise AssertionError("the setting did not arrive")


def test_the_readme_names_every_setting_and_command() -> None:
    text = (Path(__file__).parents[3] / "lsp/README.md").read_text()
    names = [field.encode_name for field in msgspec.structs.fields(Settings)]
    assert [name for name in (*names, *COMMANDS) if f"`{name}`" not in text] == []
