from collections.abc import Sequence
from typing import Union

from lsprotocol import types

from .editor import Editor

TEXT = '''def f(x):
    """Doc."""
    return <<fill>>


class A:
    def g(self):
        ...

    def h(self):
        pass
'''


async def titles(
    editor: Editor,
    start: tuple[int, int],
    end: tuple[int, int],
    *,
    automatic: bool = False,
    only: list[types.CodeActionKind] | None = None,
    diagnostics: Sequence[types.Diagnostic] = (),
) -> dict[str, types.CodeAction]:
    # lsprotocol parses every code action as a command.
    either, wire = Union[types.Command, types.CodeAction], editor.client.protocol._converter  # noqa: UP007 (its own spelling)
    wire.register_structure_hook(either, lambda data, _: wire.structure(data, types.CodeAction))
    kind = types.CodeActionTriggerKind.Automatic if automatic else types.CodeActionTriggerKind.Invoked
    answer = await editor.client.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(editor.uri),
            types.Range(types.Position(*start), types.Position(*end)),
            types.CodeActionContext(list(diagnostics), only=only, trigger_kind=kind),
        )
    )
    return {action.title: action for action in answer or () if isinstance(action, types.CodeAction)}


async def test_applicable_actions_are_offered(editor: Editor) -> None:
    await editor.begin(TEXT, ready=False)
    found = await titles(editor, (7, 0), (8, 0))
    assert {"Fill 1 <<fill>> marker", "Regenerate the selection", "Fill 2 empty bodies in A"} <= set(found)
    assert any(title.startswith("Add a docstring") for title in found)
    assert not any("test" in title for title in found)


async def test_a_changed_line_can_be_propagated(editor: Editor) -> None:
    await editor.begin("f(a¦)\nf(b)\n", ready=False)
    assert not [title for title in await titles(editor, (0, 0), (0, 0)) if "all places like it" in title]
    editor.type(", 1")
    assert [title for title in await titles(editor, (0, 0), (0, 0)) if "all places like it" in title]
    assert not [title for title in await titles(editor, (1, 0), (1, 0)) if "all places like it" in title]


async def test_an_automatic_request_gets_only_the_cheap_actions(editor: Editor) -> None:
    await editor.begin(TEXT, ready=False)
    assert list(await titles(editor, (7, 0), (7, 0), automatic=True)) == ["Fill 1 <<fill>> marker"]
    assert await titles(editor, (7, 0), (7, 0), only=[types.CodeActionKind.SourceOrganizeImports]) == {}
