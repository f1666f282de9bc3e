"""Mercury's tagged messages, read from a chat's last message: next edits (Zed, Continue) and updates to apply.

An update is new code in which markers such as ``# ... existing code ...`` replace unchanged parts. Each run of lines
between markers replaces the lines of the original from the first line that both share to the last one. If new lines
follow the last shared line, the run also replaces the indented block after it.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from lacuna_model.core.params import ChatMessage, Snippet
from lacuna_model.text import diff
from lacuna_model.text.lines import LINE_END, indentation, newline_of
from lacuna_server.http.shapes import sentinels
from lacuna_server.http.shapes.exchange import Answer, Asked, Exchange, FieldError, Prompt
from lacuna_server.http.shapes.openai import Message, chat_style
from lacuna_server.wire.protocol import ServiceError

# The roles of a chat, as the templates of models name them.
# What a tool or a function returned is read as the user's words.
ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "tool": "user",
    "function": "user",
    "assistant": "assistant",
}
CURSOR = "<|cursor|>"
# A message with the opening of one of these is no plain question.
EDIT_TAGS = ("recently_viewed_code_snippet", "current_file_content", "code_to_edit", "original_code", "update_snippet")
NO_EDIT = "None"

_SNIPPET_PATH, _FILE_PATH = "code_snippet_file_path: ", "current_file_path: "
MAX_LINES = 4000
# Matches a stripped line. No two repetitions in it can match the same text, so matching takes linear time.
_MARKER = re.compile(r"(?:#|//|/\*|\{\s*/\*|--|<!--|;|%)?\s*(?:\.\.\.|…)\s*(?:existing|rest of)", re.IGNORECASE)
# Repeated lines are compared only within so many lines of the place.
NEAR = 200


class ChatRequest(Asked, frozen=True, kw_only=True):
    """The body of a chat. Of one whose last message is an edit, an update or FIM sentinels, only that one counts."""

    messages: list[Message]
    diffusing: bool | None = None

    @property
    def text(self) -> str:
        """The text of the last message. Raises FieldError where there is no message."""
        if not self.messages:
            raise FieldError("messages", "there is none")
        return self.messages[-1].text


def edit(body: ChatRequest, model: str) -> Exchange:
    """Write at the cursor of the code to edit, as Mercury does; the answer is that code, fenced, or `None`."""
    path, file = _with_path(_tagged(body.text, "current_file_content"), _FILE_PATH)
    span = next(_spans(file, "code_to_edit"), None)
    if span is None:
        raise FieldError("messages", "the last one lacks <|current_file_content|> or <|code_to_edit|> within it")
    # The newlines after the opening tag, before the closing tag and after it belong to the tags.
    head, cursor, tail = span[1].removeprefix("\n").partition(CURSOR)
    if not cursor:
        raise FieldError("messages", f"the code to edit lacks {CURSOR}")
    body.no_form("the answer is the code to edit")
    before, after = file[: span.start()] + head, tail + file[span.end() :].removeprefix("\n")
    snippets = tuple(
        Snippet(*_with_path(found[1].removeprefix("\n"), _SNIPPET_PATH), "recently viewed")
        for found in _spans(body.text, "recently_viewed_code_snippet")
    )
    begin, end = f"```\n{head}", tail.removesuffix("\n") + "\n```"
    prompt = Prompt(before, after, path, snippets)
    return _exchange(body, model, prompt, show=lambda fill: f"{begin}{fill}{end}" if fill else NO_EDIT)


def applied(body: ChatRequest, model: str) -> Exchange:
    """Merge an update into the original code, as Mercury does."""
    body.no_form("the answer is the merged code")
    if not is_update(body.text):
        raise FieldError("messages", "the last one lacks <|original_code|> or <|update_snippet|>")
    original, update = (_tagged(body.text, tag).removesuffix("\n") for tag in ("original_code", "update_snippet"))
    return _exchange(body, model, Prompt(""), ready=Answer((merge(original, update),)))


def chat(body: ChatRequest, model: str) -> Exchange:
    """Answer a chat with the model's own chat template.

    A next edit, an update to apply or a prompt with FIM sentinels as the last message is answered as the other
    endpoints do.
    """
    text = body.text
    if is_update(text):
        return applied(body, model)
    if any(f"<|{tag}|>" in text and f"<|/{tag}|>" in text for tag in EDIT_TAGS):
        return edit(body, model)
    if sentinels.is_prompt(text):  # a question about such marks is one, too
        return _exchange(body, model, sentinels.parse(text))
    wrong = [one.role for one in body.messages if one.role not in ROLES]
    if wrong:
        raise FieldError("messages", f"the role {wrong[0][:40]!r} is none of {', '.join(ROLES)}")
    if not text.strip():
        raise FieldError("messages", "the last one is empty")
    messages = tuple(ChatMessage(ROLES[one.role], one.text) for one in body.messages)
    return _exchange(body, model, Prompt(""), chat=messages)


def _exchange(body: ChatRequest, model: str, prompt: Prompt, **more: Any) -> Exchange:
    return body.exchange(prompt, chat_style(model), diffusing=bool(body.diffusing), **more)


def is_update(message: str) -> bool:
    """Return whether a message contains both an update and its original code."""
    return all(any(_spans(message, tag)) for tag in ("original_code", "update_snippet"))


def _spans(text: str, tag: str) -> Iterator[re.Match[str]]:
    """Yield every span that ``<|tag|>`` and ``<|/tag|>`` enclose; its first group is what is between them."""
    closing = f"<|/{tag}|>"
    closed = text[: text.rfind(closing) + len(closing)]  # each opening in it has an end: one pass finds all
    return re.finditer(rf"<\|{tag}\|>(.*?)<\|/{tag}\|>", closed, re.DOTALL)


def _tagged(text: str, tag: str) -> str:
    """Return the content of the first such tag without its first newline; "" where there is no such tag."""
    span = next(_spans(text, tag), None)
    return span[1].removeprefix("\n") if span is not None else ""


def _with_path(text: str, label: str) -> tuple[str, str]:
    """Return the path that a label on the first line gives ("" without a label), and the rest of the text."""
    if not text.startswith(label):
        return "", text
    line, _, rest = text.partition("\n")
    return line.removeprefix(label), rest


def merge(original: str, update: str) -> str:
    """Return ``original`` with the update merged in; an update without a marker is the whole new code.

    New lines end as the first one of the original does. Raises ServiceError ``bad_request`` where a part of the update
    has no line in common with the original, and ``too_large`` where one of them has more than ``MAX_LINES`` lines.
    """
    old, lines, newline = LINE_END.split(original), LINE_END.split(update), newline_of(original)
    if not any(map(_is_marker, lines)):
        return LINE_END.sub(newline, update) if len(old) > 1 else update
    if max(len(old), len(lines)) > MAX_LINES:
        raise ServiceError("too_large", f"an update is merged into {MAX_LINES} lines at most")
    ended = [line + end for line, end in zip(old, [*LINE_END.findall(original), ""], strict=True)]
    merged: list[str] = []
    at = 0
    for run in (list(run) for is_marker, run in itertools.groupby(lines, _is_marker) if not is_marker):
        if written := [index for index, line in enumerate(run) if line.strip()]:
            kept = run[written[0] : written[-1] + 1]  # the original has blank lines of its own beside the markers
            start, end = _place(old, kept, at)
            merged += [*ended[at:start], newline.join(kept), newline if end < len(old) else ""]
            at = end
    return "".join([*merged, *ended[at:]])


def _is_marker(line: str) -> bool:
    return _MARKER.match(line.strip()) is not None


def _place(old: Sequence[str], run: Sequence[str], at: int) -> tuple[int, int]:
    """Return the range of lines of the original, from line ``at`` on, that the run replaces.

    Lines that occur once in each text are the fixed points (patience diff). Other lines are compared only before the
    first fixed point and after the last one. So the work is linear in the length of the texts.
    """
    theirs, ours = [line.rstrip() for line in old[at:]], [line.rstrip() for line in run]
    found = diff.in_order([pair for pair in diff.once(theirs, ours) if theirs[pair[0]]])
    if found:
        (first, ours_first), (last, ours_last) = found[0], found[-1]
        begin, ours_begin = max(first - NEAR, 0), max(ours_first - NEAR, 0)
        front = _compared(theirs[begin:first], ours[ours_begin:ours_first], begin, ours_begin)
        found = [*front, *found, *_compared(theirs[last + 1 :], ours[ours_last + 1 :], last + 1, ours_last + 1)]
    else:
        found = _compared(theirs, ours, 0, 0)
    if not found:
        raise ServiceError("bad_request", f"the original has no line of the part that begins {run[0].strip()!r}")
    (first, _), (last, known) = found[0], found[-1]
    end = at + last + 1
    return at + first, (_block_end(old, end) if known + 1 < len(run) else end)


def _compared(theirs: Sequence[str], ours: Sequence[str], at: int, ours_at: int) -> list[tuple[int, int]]:
    """Return the numbers of lines that the first ``NEAR`` of both share; blank ones count only next to others."""
    return [
        (at + hunk.start + index, ours_at + hunk.new_start + index)
        for kind, hunk in diff.blocks(theirs[:NEAR], ours[:NEAR])
        if kind == "equal" and any(ours[hunk.new_start : hunk.new_end])
        for index in range(hunk.end - hunk.start)
    ]


def _block_end(old: Sequence[str], end: int) -> int:
    """Return the end of the block after line ``end - 1``: of the lines that are indented further than that line."""
    depth = len(indentation(old[end - 1]))
    for index in range(end, len(old)):
        if old[index].strip():
            if len(indentation(old[index])) <= depth:
                break
            end = index + 1
    return end
