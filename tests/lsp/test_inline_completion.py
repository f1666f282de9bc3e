import asyncio

import pytest
from lsprotocol import types

from .editor import Editor, until
from .service import Daemon


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_typed_text_reaches_the_engine_and_a_suggestion_is_at_the_cursor_in_every_encoding(
    editor: Editor, daemon: Daemon, encoding: str
) -> None:
    daemon.plan(fills=["sum(values)"])
    await editor.initialize({"debounce": False}, encoding=encoding)
    editor.open("\ufeff# 😀\r\ndef total(values):\r\n\tx = 'ä😀' + ¦\r\n")
    editor.type("'👩‍👧'")
    editor.type("\r\n\tq = ")
    editor.delete(2)
    editor.type("= ")
    (item,) = await editor.items()
    assert item.insert_text == "sum(values)"
    assert item.range is not None
    assert item.range.start == item.range.end == editor.position
    (request,) = daemon.requests
    assert request["text"] == editor.text
    assert request["regions"][0]["start"] == request["regions"][0]["end"] == len(editor.before.encode())
    assert request["path"] == "/work/code.py"
    assert request["language"] == "python"


async def test_an_invoked_request_gets_several_candidates(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["one", "two", "one", "three"])
    await editor.begin("value = ¦\n", candidates=4)
    assert await editor.suggest(invoked=True) == ["one", "two", "three"]
    assert daemon.requests[0]["task"]["candidates"] == 4


async def test_an_unlikely_suggestion_is_shown_only_if_invoked(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["unlikely(words)"], confidence=0.1)
    await editor.begin()
    assert await editor.suggest() == []
    assert await editor.suggest() == []
    assert len(daemon.requests) == 1
    assert [status.held for status in editor.statuses][-1] == 1
    assert await editor.suggest(invoked=True) == ["unlikely(words)"]
    assert [status.held for status in editor.statuses][-1] == 0


async def test_an_unlikely_suggestion_is_requested_again_as_the_user_types_it(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["unlikely(words)"], confidence=0.1)
    await editor.begin()
    assert await editor.suggest() == []
    daemon.plan(fills=["likely(words)"], confidence=0.7)
    editor.type("un")
    assert await editor.suggest() == ["likely(words)"]
    assert len(daemon.requests) == 2
    status = await editor.command("lacuna.status")
    assert status["suggestions"]["unsure"] == 1


async def test_in_a_line_where_one_was_refused_a_suggestion_has_to_be_likelier(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["first(words)"], confidence=0.7)
    await editor.begin()
    assert await editor.suggest() == ["first(words)"]
    editor.type("other")
    daemon.plan(fills=["(words)"], confidence=0.7)
    assert await editor.suggest() == []
    editor.type("s")
    daemon.plan(fills=["(more)"], confidence=0.9)
    assert await editor.suggest() == ["(more)"]
    editor.type("\n")
    daemon.plan(fills=["last = value"], confidence=0.7)
    assert await editor.suggest() == ["last = value"]


@pytest.mark.parametrize(
    ("dial", "shown"), [("quiet", []), ("normal", ["total(first"]), ("bold", ["total(first, second)"])]
)
async def test_an_unsure_end_is_cut_as_the_dial_says(
    editor: Editor, daemon: Daemon, dial: str, shown: list[str]
) -> None:
    words = [(5, 0.78), (6, 0.72), (11, 0.68), (12, 0.58)]
    daemon.plan(fills=["total(first, second)"], confidence=0.55, words=words)
    await editor.begin("value = ¦\n", suggest=dial)
    assert await editor.suggest() == shown
    assert await editor.suggest(invoked=True) == ["total(first, second)"]


async def test_what_was_cut_is_likelier_once_the_beginning_is_typed(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["total(first, second)"], confidence=0.45, words=[(5, 0.5), (12, 0.48)])
    await editor.begin()
    assert await editor.suggest() == []
    editor.type("total")
    assert await editor.suggest() == ["(first, second)"]
    assert len(daemon.requests) == 1


async def test_snoozed_suggestions_come_on_request_alone_until_they_go_on(editor: Editor) -> None:
    await editor.begin()
    assert await editor.command("lacuna.snooze", {"minutes": 5}) == {"minutes": 5}
    assert await editor.suggest() == []
    status = await editor.command("lacuna.status")
    assert 290 < status["snoozedS"] <= 300
    assert 290 < editor.statuses[-1].snoozedS <= 300
    assert await editor.suggest(invoked=True) == ["filled"]
    await editor.command("lacuna.snooze", {"minutes": 0})
    assert editor.statuses[-1].snoozedS == 0
    editor.type("x = ")
    assert await editor.suggest() == ["filled"]


async def test_the_end_of_a_snooze_is_told(editor: Editor) -> None:
    await editor.begin()
    await editor.command("lacuna.snooze", {"minutes": 0.001})
    assert editor.statuses[-1].snoozedS == 1
    await until(lambda: editor.statuses[-1].snoozedS == 0)


@pytest.mark.parametrize(
    ("where", "text", "shown"),
    [
        ("everywhere", "# a note of ¦\n", True),
        ("no_comments", "# a note of ¦\n", False),
        ("no_comments", 'x = "a text of ¦"\n', True),
        ("code", 'x = "a text of ¦"\n', False),
        ("code", 'x = f"a text of {¦}"\n', True),
        ("code", "x = ¦\n", True),
    ],
)
async def test_suggestions_stay_out_of_comments_and_strings_if_the_user_says_so(
    editor: Editor, daemon: Daemon, where: str, text: str, shown: bool
) -> None:
    daemon.plan(fills=["words"])
    await editor.begin(text, suggestIn=where)
    assert bool(await editor.suggest()) == shown


async def test_a_suggestion_is_reused_while_the_user_types_it_and_not_shown_again_where_it_was_left(
    editor: Editor, daemon: Daemon
) -> None:
    daemon.plan(fills=["total(first, second)"])
    await editor.begin()
    assert await editor.suggest() == ["total(first, second)"]
    editor.type("to")
    assert await editor.suggest() == ["tal(first, second)"]
    editor.type("tal(", closing=")")
    assert await editor.suggest() == ["first, second"]
    editor.type("first, second")
    editor.delete(3)
    assert await editor.suggest() == ["ond"]
    assert len(daemon.requests) == 1
    daemon.plan(fills=["wrong()"])
    editor.type("x")
    assert await editor.suggest() == ["wrong()"]
    editor.delete(1)
    assert await editor.suggest() == []  # it was left
    assert await editor.suggest(invoked=True) != []


async def test_a_newer_request_stops_the_older_one(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["late"], steps=200, pause=0.02)
    await editor.begin()
    older = asyncio.ensure_future(editor.suggest())
    await until(lambda: daemon.events.count("step") > 1)
    daemon.plan(fills=["now"])
    editor.type("x + ")
    assert await editor.suggest() == ["now"]
    assert await older == []
    events = daemon.events
    assert "stopped" in events
    assert events.count("step") < 50


async def test_a_request_that_the_client_cancels_is_stopped(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(steps=200, pause=0.02)
    await editor.begin()
    code = await editor.cancelled(types.TEXT_DOCUMENT_INLINE_COMPLETION, editor.here(), lambda: daemon.requests)
    assert code == types.LSPErrorCodes.RequestCancelled
    await until(lambda: "stopped" in daemon.events)


async def test_a_block_is_requested_where_one_begins_and_a_line_elsewhere(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("def f(x):\n    ¦\n", maxLines=5, maxTokens=40)
    await editor.suggest()
    editor.type("y = ")
    await editor.suggest()
    await editor.suggest(invoked=True)
    block, line, invoked = (request["regions"][0] for request in daemon.requests)
    assert (block["max_lines"], block["single_line"]) == (5, False)
    assert (line["max_lines"], line["single_line"]) == (1, True)
    assert (invoked["max_lines"], invoked["single_line"]) == (5, False)
    assert block["max_tokens"] == line["max_tokens"] == 40


async def test_the_selected_item_of_the_suggest_widget_is_extended(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["(path)"])
    await editor.begin("data = re¦\n")
    start = types.Position(0, 7)
    selected = types.SelectedCompletionInfo(types.Range(start, editor.position), "read_file")
    (item,) = await editor.items(selected=selected)
    assert item.insert_text == "read_file(path)"
    assert item.range == selected.range
    assert daemon.requests[0]["text"] == "data = read_file\n"
    # What the user has not typed refuses nothing.
    other = types.SelectedCompletionInfo(selected.range, "reduce")
    assert [one.insert_text for one in await editor.items(selected=other)] == ["reduce(path)"]
    (again,) = await editor.items(selected=selected)
    assert again.insert_text == "read_file(path)"
    # The selected item must not stay in the server's document.
    editor.type("lease = ")
    await editor.suggest()
    assert daemon.requests[-1]["text"] == "data = release = \n"


async def test_a_suggestion_ends_where_the_engine_has_ended_it(editor: Editor, daemon: Daemon) -> None:
    """A rule on the text alone would cut it before the bracket, and it would not parse."""
    daemon.plan(fills=["\n    2,\n]\ny = [\n    1,"])
    await editor.begin("x = [\n    1,¦\n]\n", multiline="always")
    assert await editor.suggest() == ["\n    2,\n]\ny = [\n    1,"]


async def test_settings_turn_suggestions_off(editor: Editor) -> None:
    await editor.begin("value = ¦\n", automatic=False)
    assert await editor.suggest() == []
    assert await editor.suggest(invoked=True) == ["filled"]
    settings = {"lacuna": {"disabledLanguages": ["python"]}}
    editor.configure(settings)
    assert await editor.suggest(invoked=True) == []
    editor.open("value = ¦\n", "view.tsx", "typescript.tsx")
    settings = {"lacuna": {"disabledLanguages": ["typescript"]}}
    editor.configure(settings)
    assert await editor.suggest(invoked=True) == []
    assert editor.statuses[-1].nothing == "suggestions are off for typescript"


@pytest.mark.parametrize("fill", ["", "  \n "])
async def test_an_empty_fill_that_ended_at_its_time_limit_is_not_kept(
    editor: Editor, daemon: Daemon, fill: str
) -> None:
    daemon.plan(fills=[fill], status="deadline")
    await editor.begin("value = ¦\n", multiline="always")
    assert await editor.suggest() == []
    assert await editor.suggest(invoked=True) == []
    daemon.plan()
    assert await editor.suggest() == ["filled"]
    assert await editor.suggest(invoked=True) == ["filled"]


async def test_a_user_who_asks_again_where_nothing_was_found_gets_a_new_answer(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(status="no_valid_fill")
    await editor.begin()
    assert await editor.suggest(invoked=True) == []
    assert await editor.suggest() == []
    assert len(daemon.requests) == 1
    daemon.plan(fills=["there"])
    assert await editor.suggest(invoked=True) == ["there"]


async def test_a_user_who_asks_waits_longer_and_sees_progress(editor: Editor, daemon: Daemon) -> None:
    await editor.begin()
    await editor.suggest()
    assert await editor.suggest(invoked=True) == ["filled"]
    assert not editor.progress  # it was there at once
    typed, asked = (request["options"]["deadline_ms"] for request in daemon.requests)
    assert 0 < typed <= 5000 < 25_000 < asked <= 30_000  # less what they have waited in the service
    editor.type("x + ")
    daemon.plan(steps=30, pause=0.1)
    assert await editor.suggest(invoked=True) == ["filled"]
    await until(lambda: [seen for seen in editor.progress if len(seen) == 2])
    ((begin, end),) = editor.progress
    assert isinstance(begin, types.WorkDoneProgressBegin)
    assert (begin.title, begin.cancellable) == ("Suggest", False)
    assert isinstance(end, types.WorkDoneProgressEnd)


@pytest.mark.parametrize(
    ("text", "plan", "why"),
    [
        ("value = ¦\n", {"fills": [""], "status": "deadline"}, "the model wrote nothing within 30 s"),
        ("value = ¦\n", {"status": "no_valid_fill"}, "nothing was found that fits"),
        ("value = ¦\n", {"status": "no_valid_fill", "message": "no text fits"}, "no text fits"),
        ("value = ¦\n", {"fills": [""]}, "the model writes nothing here"),
        ("value = 1\n¦\n", {"fills": ["value = 1"]}, "stands here already"),
        ("val¦ue = 1\n", {}, "inside a word"),
    ],
)
async def test_the_status_says_why_a_user_who_asked_got_nothing(
    editor: Editor, daemon: Daemon, text: str, plan: dict[str, object], why: str
) -> None:
    daemon.plan(**plan)
    await editor.begin(text)
    assert await editor.suggest() == []
    assert (await editor.command("lacuna.status"))["nothing"] == ""
    assert await editor.suggest(invoked=True) == []
    assert why in editor.statuses[-1].nothing
    assert why in (await editor.command("lacuna.status"))["nothing"]
    daemon.plan()
    editor.type("\nnew = ")
    assert await editor.suggest(invoked=True) == ["filled"]
    assert editor.statuses[-1].nothing == ""
    assert editor.messages == []


@pytest.mark.parametrize("mark", ["\u202e", "\u2066"])
async def test_a_suggestion_that_hides_what_it_says_is_refused(editor: Editor, daemon: Daemon, mark: str) -> None:
    daemon.plan(fills=[f"role == {mark}'user'\nx = 1"], steps=4)
    await editor.begin("if ¦\n", multiline="always")
    assert await editor.suggest() == []
    assert await editor.suggest(invoked=True) == []
    assert f"U+{ord(mark):04X}" in editor.statuses[-1].nothing
    daemon.plan(fills=["one", f"two{mark}", "three"])
    assert await editor.suggest(invoked=True) == ["one", "three"]


async def test_a_text_that_was_written_up_to_its_time_limit_is_kept(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["half"], status="deadline")
    await editor.begin()
    assert await editor.suggest() == ["half"]
    assert await editor.suggest() == ["half"]
    assert len(daemon.requests) == 1


async def test_where_a_file_has_such_characters_a_suggestion_may_have_them(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["'\u2067\u05d0\u2069'"])
    await editor.begin("a = '\u2067\u05d1\u2069'\nb = ¦\n")
    assert await editor.suggest() == ["'\u2067\u05d0\u2069'"]


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
