"""Reads the prompts of next-edit models: the last changes, and a window of a file that is to be written anew.

Sweep's prompts have the window before and after the last change (``original/``, ``current/``); the answer is the window
as it would become. Zed's Zeta prompts have a history of diffs and a region with the cursor in it; from 2.1 on, numbered
markers stand around and in the region. Here the window becomes what follows from the changes by the rules of
:mod:`lacuna_model.next_edit`. Where nothing does, the model writes at the cursor. Nothing else of the window changes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from lacuna_model.core import work
from lacuna_model.core.params import Snippet
from lacuna_model.languages.registry import language_for
from lacuna_model.next_edit.changes import RecentChange, TokenizedText
from lacuna_model.next_edit.following import applied, candidates, chosen
from lacuna_model.text.diff import num_common_end
from lacuna_model.text.lines import lines_of

# The changes that are followed; and the size of a window and of a change up to which they are.
MAX_CHANGES, MAX_LINES, MAX_CHARACTERS = 8, 400, 16_000
MAX_WORK_S = 1.0  # of work for all changes of a prompt
SEPARATOR = "<|file_sep|>"
# Zeta 2 in its orders of prefix, suffix and region; Zeta 1 in markdown.
CURSOR, OLD_CURSOR = "<|user_cursor|>", "<|user_cursor_is_here|>"
_SWEEP_CURSOR = "<|cursor|>"
_START, _END = "<|editable_region_start|>", "<|editable_region_end|>"
_MERGE_START, _MERGE_MIDDLE, _MERGE_END = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED\n"
_FIM = re.compile(r"<\|fim_(prefix|suffix|middle)\|>")
# On Seed-Coder the suffix is first, then files, the last of which has the region in it, between markers.
_SEED_SUFFIX, _SEED_PREFIX = "<[fim-suffix]>", "<[fim-prefix]>"
_SEED_MIDDLE, _SEED_FILE = "<[fim-middle]>", "<filename>"
_MARKER = re.compile(r"<\|marker_\d+\|>")
_RANGE = re.compile(r":\d+:\d+$")
_HUNK = re.compile(r"^@@.*\n?", re.MULTILINE)
_FILE_LINES = re.compile(r"^(?:--- a?/?(?P<old>.*)|\+\+\+ b?/?.*|// User accepted prediction:)\n?", re.MULTILINE)


# The texts that the last changes exchanged, old and new, the latest last.
Changes = tuple[tuple[str, str], ...]
Snippets = tuple[Snippet, ...]
Show = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a file, ``current``, with a cursor at a character offset, between ``before`` and ``after``.

    ``show`` puts the new text
    of the window into the format of the answer, behind ``begun``, which the client has written of it.
    """

    path: str
    before: str
    current: str
    after: str
    cursor: int
    changes: Changes
    snippets: Snippets
    show: Show
    begun: str = ""

    def followed(self) -> str:
        """Returns the window with what follows from the latest change that is followed anywhere; else as it is.

        Only the latest changes are tried, and only texts as short as clients send them, within one budget of work. What
        stands in strings and comments follows once no code does: it may mean something else.
        """
        tokens, until = TokenizedText(self.current), work.mark(MAX_WORK_S)
        language = language_for(self.path)
        for old, new in reversed(self.changes[-MAX_CHANGES:]):
            if work.reached(until):
                break
            if any(len(one) > MAX_CHARACTERS or one.count("\n") > MAX_LINES for one in (self.current, old, new)):
                continue
            if (change := RecentChange.at(old, new, new.count("\n"), language)) is None:
                continue
            found = chosen(candidates(change, tokens, where="apart", until=until))
            found = [one for one in found if one.kind == "code"] or found
            if not applied(self.current, found).startswith(self.begun):
                found = [one for one in found if one.place.start >= len(self.begun)]
            if found:
                return applied(self.current, found)
        return self.current

    def filled(self, fill: str) -> str:
        """Returns the window with a text at the cursor."""
        return self.current[: self.cursor] + fill + self.current[self.cursor :]


def parse(prompt: str) -> Window | None:
    """Returns the window that a prompt asks for; None if it is not a prompt of a next-edit model."""
    if f"{SEPARATOR}current/" in prompt and f"{SEPARATOR}updated/" in prompt:
        return _sweep(prompt)
    return _zeta(prompt) or _zeta_in_markdown(prompt)


def _sweep(prompt: str) -> Window | None:
    snippets: list[Snippet] = []
    changes: list[tuple[str, str]] = []
    texts: dict[str, str] = {}
    path = ""
    for section in prompt.split(SEPARATOR)[1:]:
        head, _, text = section.partition("\n")
        name = _RANGE.sub("", head.strip())
        kind, _, rest = name.partition("/")
        if kind in ("original", "current", "updated") and rest:
            texts[kind], path = text if kind == "updated" else text.removesuffix("\n"), rest
        elif name.endswith(".diff"):
            old, marked, new = text.removeprefix("original:\n").partition("\nupdated:\n")
            if marked:
                changes.append((f"{old}\n", new if new.endswith("\n") else f"{new}\n"))
        else:
            snippets.append(Snippet(name, text, reason="prompt"))
    if "current" not in texts or "updated" not in texts:
        return None
    head, marked, tail = texts["current"].partition(_SWEEP_CURSOR)
    current, original = head + tail, texts.get("original", "")
    if original and original != current:
        changes.append((f"{original}\n", f"{current}\n"))
    begun = texts["updated"]  # some clients write the first lines of the answer themselves
    cursor = len(head)
    if not marked and original and original != current:  # where the text that differs ends
        cursor = len(current) - num_common_end(original, current)
    if current.startswith(begun):
        cursor = max(cursor, len(begun))
    seen = tuple(changes), tuple(snippets)
    return Window(path, "", current, "", cursor, *seen, lambda new: new.removeprefix(begun), begun)


def _zeta(prompt: str) -> Window | None:
    """Zeta 2 and 2.1: the region is in a section of its own, or behind the beginning of its file."""
    region = first = end = ""
    if prompt.startswith(_SEED_SUFFIX):
        after, _, rest = prompt.removeprefix(_SEED_SUFFIX).partition(_SEED_PREFIX)
        rest, _, given = rest.rpartition(_SEED_MIDDLE)
        *files, last = rest.split(_SEED_FILE)
        path, _, before = last.partition("\n")
        if len(markers := list(_MARKER.finditer(before))) > 1:
            first, end = markers[0][0], markers[-1][0]
            region = _MARKER.sub("", before[markers[0].end() : markers[-1].start()])
            before = before[: markers[0].start()]
    else:
        header, *sections = _FIM.split(prompt)
        pairs = list(zip(sections[::2], sections[1::2], strict=True))
        *files, path = header.split(SEPARATOR)
        before, after = (dict(pairs).get(name, "").removeprefix("\n") for name in ("prefix", "suffix"))
        middles = [text for name, text in pairs if name == "middle"]
        region = next((text for text in middles if CURSOR in text), "")
        given = "".join(middles[-1:]).removeprefix(region).removeprefix("updated\n")
    if CURSOR not in region:
        before, marked, region = before.partition(_MERGE_START)
        region = marked + region
    if region.startswith(_MERGE_START):
        region, end = region.removeprefix(_MERGE_START).removesuffix(_MERGE_MIDDLE), _MERGE_END
    region = region.removeprefix("current\n")
    begun = given.removeprefix(first)

    def show(new: str) -> str:
        unchanged = bool(first) and not begun and new == region.replace(CURSOR, "", 1)  # the same marker twice says so
        return (first * 2 if unchanged else f"{first}{new}{end}").removeprefix(given)

    changes: list[tuple[str, str]] = []
    snippets: list[Snippet] = []
    for name, _, text in (file.partition("\n") for file in files):
        if name.strip() in ("edit history", "edit_history"):
            changes += _diffs(text)
        elif text.strip():
            snippets.append(Snippet(name.strip(), text, reason="prompt"))
    return _window(path, before, region, after, tuple(changes), tuple(snippets), show, begun)


def _window(
    path: str, before: str, region: str, after: str, changes: Changes, snippets: Snippets, show: Show, begun: str = ""
) -> Window | None:
    """Returns the window of a region with a cursor in it; None without a cursor."""
    head, marked, tail = region.partition(CURSOR)
    cursor = max(len(head), len(begun)) if (head + tail).startswith(begun) else len(head)
    return Window(path.strip(), before, head + tail, after, cursor, changes, snippets, show, begun) if marked else None


def _diffs(text: str) -> list[tuple[str, str]]:
    """Returns the old and the new text of every hunk of unified diffs."""
    found = []
    for hunk in _HUNK.split(_FILE_LINES.sub("", text)):
        lines = lines_of(hunk, keepends=True)
        old = "".join(line[1:] for line in lines if line[:1] in ("-", " "))
        new = "".join(line[1:] for line in lines if line[:1] in ("+", " "))
        if old != new:
            found.append((old, new))
    return found


def _zeta_in_markdown(prompt: str) -> Window | None:
    edits, _, excerpt = prompt.partition("### User Excerpt:")
    fenced = excerpt.partition("```")[2]
    path, _, text = fenced.partition("\n")
    before, _, rest = text.removeprefix("<|start_of_file|>\n").partition(f"{_START}\n")
    region, marked, after = rest.partition(_END)
    if not marked:
        return None
    changes = [pair for part in edits.split("```diff\n")[1:] for pair in _diffs(part.partition("```")[0])]
    region, after = region.replace(OLD_CURSOR, CURSOR, 1), after.removeprefix("\n").rpartition("```")[0]
    return _window(path, before, region, after, tuple(changes), (), lambda new: f"{_START}\n{new}{_END}\n```\n")
