from lsprotocol import types

from .editor import Editor
from .service import Daemon


async def test_clients_without_inline_completion_get_ordinary_completion(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["l(first, second)\nmore"])
    settings = {"debounce": False, "multiline": "always"}
    result = await editor.initialize(settings, without="text_document.inline_completion")
    assert result.capabilities.completion_provider is not None
    editor.open("😀 = tota¦\n")
    answer = await editor.client.text_document_completion_async(
        types.CompletionParams(types.TextDocumentIdentifier(editor.uri), editor.position)
    )
    assert isinstance(answer, types.CompletionList)
    (item,) = answer.items
    assert item.label == "total(first, second)"
    assert item.filter_text == "total(first, second)\nmore"
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "total(first, second)\nmore"
    assert item.text_edit.range == types.Range(types.Position(0, 5), editor.position)
    assert item.command is not None
    assert item.command.command == "lacuna.accepted"


async def test_clients_with_inline_completion_get_no_ordinary_completion(editor: Editor) -> None:
    result = await editor.initialize(ready=False)
    assert result.capabilities.completion_provider is None
    assert result.capabilities.inline_completion_provider == types.InlineCompletionOptions()
