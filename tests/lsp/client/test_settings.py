from collections.abc import Mapping
from pathlib import Path

import pytest
from lsprotocol import types
from tests.lsp.editor import Editor, launched, until
from tests.lsp.service import Daemon

from lacuna_lsp.client.settings import EDITOR, parse
from lacuna_server.wire.layers import SettingsLayer


def test_settings_have_names_in_camel_case_and_may_be_nested_or_absent() -> None:
    of_nothing: tuple[object, ...] = (None, {}, {"port": None}, [], {"lacuna": []})
    for values in of_nothing:  # Lua writes an empty object as a list
        assert parse(values) == SettingsLayer(EDITOR)
    wanted = SettingsLayer(EDITOR, {"max_tokens": 7, "disabled_languages": ("text",)})
    assert parse({"maxTokens": 7, "disabledLanguages": ["text"]}) == wanted
    assert parse({"lacuna": {"maxTokens": 7, "disabledLanguages": ["text"]}, "other": {}}) == wanted


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"maxTokns": 3}, "unknown setting lacuna.maxTokns, did you mean maxTokens?"),
        ({"host": "0.0.0.0"}, "unknown setting lacuna.host"),
        ({"maxTokens": "many"}, "lacuna.maxTokens must be 1 to 512"),
        ({"maxTokens": 0}, "lacuna.maxTokens must be 1 to 512"),
        ({"multiline": "often"}, 'lacuna.multiline must be "always" or "auto" or "never"'),
        ([1], "the settings are not an object: [1]"),
    ],
)
def test_an_invalid_setting_is_reported_and_its_default_applies(values: object, problem: str) -> None:
    assert parse(values) == SettingsLayer(EDITOR, problems=(problem,))


async def test_each_problem_of_the_settings_is_shown_once(editor: Editor) -> None:
    await editor.initialize({"colour": "red"}, ready=False)
    for values in ({"colour": "red"}, {"lacuna": {"colour": "red", "automatic": 1}}):
        editor.configure(values)
    await until(lambda: len(editor.messages) > 1)
    assert editor.messages == [
        "Lacuna: unknown setting lacuna.colour",
        "Lacuna: lacuna.automatic must be true or false",
    ]


async def test_settings_are_requested_if_a_change_notification_contains_none(editor: Editor) -> None:
    await editor.begin("value = ¦\n")
    editor.client.set_configuration({"enabled": False}, section="lacuna")
    editor.configure(None)
    for _ in range(500):
        if await editor.suggest() == []:
            return
        editor.type("x")
    raise AssertionError("the setting did not arrive")


@pytest.fixture
def configured(tmp_path: Path, daemon: Daemon) -> tuple[Mapping[str, str], Path, Path]:
    """An environment for the language server, the user's file and a project's."""
    own, project = tmp_path / "config" / "lacuna" / "lacuna.toml", tmp_path / "project" / "lacuna.toml"
    for file in (own, project):
        file.parent.mkdir(parents=True)
    return daemon.environment | {"XDG_CONFIG_HOME": str(tmp_path / "config")}, own, project


async def test_the_files_are_read_the_editor_goes_before_them_and_what_is_wrong_is_shown(
    configured: tuple[Mapping[str, str], Path, Path], daemon: Daemon
) -> None:
    environment, own, project = configured
    own.write_text("debounce = false\nmax_tokns = 7\nmax_tokens = 7\nworkspace = false\n")
    project.write_text('max_tokens = 8\ncandidates = 4\nengine = "evil:load"\n')
    async with launched(environment) as editor:
        await editor.initialize({"candidates": 1}, folder=project.parent)
        editor.open("value = ¦\n", uri=(project.parent / "code.py").as_uri())
        assert await editor.suggest(invoked=True) == ["filled"]
        (request,) = daemon.requests
        assert (request["regions"][0]["max_tokens"], request["task"]["candidates"], request["workspace"]) == (8, 1, "")
        assert editor.messages == [
            f"Lacuna: {own}: unknown key 'max_tokns', did you mean max_tokens?",
            f"Lacuna: {project}: engine cannot be set by a project, only in your own {own}",
        ]


async def test_the_status_says_what_files_and_the_editor_turn_off(
    configured: tuple[Mapping[str, str], Path, Path], daemon: Daemon
) -> None:
    environment, own, project = configured
    own.write_text("debounce = false\nautomatic = false\n")
    project.write_text("enabled = false\n")
    async with launched(environment) as editor:
        await editor.initialize(folder=project.parent)
        editor.open("value = ¦\n")
        assert (editor.statuses[-1].enabled, editor.statuses[-1].automatic) == (False, False)
        assert await editor.suggest(invoked=True) == []
        assert editor.statuses[-1].nothing == "suggestions are turned off"
        editor.configure({"enabled": True})
        await until(lambda: editor.statuses[-1].enabled)
        assert not editor.statuses[-1].automatic
        assert await editor.suggest(invoked=True) == ["filled"]


async def test_open_documents_follow_the_settings_and_the_folders(
    editor: Editor, daemon: Daemon, tmp_path: Path
) -> None:
    async def workspace() -> str:
        assert await editor.suggest() == ["filled"]
        editor.type("x + ")
        return str(daemon.requests[-1]["workspace"])

    inner = tmp_path / "inner"
    inner.mkdir()
    await editor.initialize({"debounce": False}, folder=tmp_path)
    editor.open("value = ¦\n", uri=(inner / "code.py").as_uri())
    assert await workspace() == str(tmp_path)
    for reads in (False, True):
        editor.configure({"debounce": False, "workspace": reads})
        assert await workspace() == (str(tmp_path) if reads else "")
    added = types.WorkspaceFoldersChangeEvent([types.WorkspaceFolder(inner.as_uri(), "inner")], [])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
    assert await workspace() == str(inner)


async def test_a_service_with_another_model_is_told_once(editor: Editor) -> None:
    await editor.initialize({"model": "qwen2.5-coder-1.5b"})
    editor.configure({"model": "qwen2.5-coder-1.5b", "candidates": 2})
    await until(lambda: editor.messages)
    assert (await editor.command("lacuna.status"))["state"] == "ready"
    assert editor.messages == [
        "Lacuna: the running service has the model qwen2.5-coder-0.5b, not qwen2.5-coder-1.5b; lacuna stop ends it"
    ]
