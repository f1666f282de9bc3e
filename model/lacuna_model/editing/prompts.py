"""The prompts in which a model rewrites lines because of what was edited last.

Sweep's next-edit models: each file is a section. The last changes come first (``F.diff``, with the old and the new
lines), then the lines as they were before the last change (``original/F``) and as they are (``current/F``); the model
writes ``updated/F``. The format is published with Sweep's open weights (blog.sweep.dev/posts/oss-next-edit); its
section marks are those in which Qwen2.5-Coder has learned repositories.

Zed's Zeta 2.1 (the card of zed-industries/zeta-2.1, and Zed's crates/zeta_prompt, V0318): the text after the lines,
other files, the last changes as a diff, then the open file, in which numbered markers stand around the lines. The model
writes the first marker, the new lines and the next marker.

Edit rows: the prompt that fills the gap behind a change, then the change and a mark. The header is what was just done,
and the name of what comes. Behind it the model writes nothing where nothing is to do, or else the lines anew, as far as
their first change goes. Rows from the header on have an addition of their own (``network/linear.py``), so the rows
before it are those of a fill in the same place.
"""

from collections.abc import Sequence
from pathlib import PurePath

from lacuna_model.core.context import Gap, Header, Layout, TextTokenizer
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, PastChange
from lacuna_model.editing.part import EditedPart
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.network.linear import EDIT
from lacuna_model.readers import Loaded
from lacuna_model.text import diff
from lacuna_model.text.diff import common_ends
from lacuna_model.text.lines import splice, with_feeds
from lacuna_model.tiers import DocumentSession
from lacuna_model.tokenizer import FimTokens

# Lines above the part that the model reads; those of Zeta's format also below it.
LINES_BEFORE, LINES_AFTER = 10, 10
FILE, CURSOR, FIRST, NEXT = "<filename>", "<|user_cursor|>", "<|marker_1|>", "<|marker_2|>"


def window_layout(model: Loaded, part: EditedPart, request: InfillRequest, changes: Sequence[PastChange]) -> Layout:
    """The layout in which the model rewrites a part after ``changes``.

    The part's text is the draft. Raises RequestError where the part is too long, and for models without the tokens of a
    format.
    """
    changes, old = [one.bare for one in changes], part.draft(model.tokenizer)
    before = "".join(with_feeds(part.above.decode()).splitlines(keepends=True)[-LINES_BEFORE:])
    if isinstance(model, LoadedFim) and model.edit_format == "zeta":
        after = "".join(with_feeds(part.below.decode()).splitlines(keepends=True)[:LINES_AFTER])
        prompt = _zeta(model, part, before, after, request, changes)
        marker = model.tokenizer.encode(NEXT)[0]
        # Many lines begin with "<", few with "<|".
        fences = frozenset({marker} if len(model.tokenizer.token_bytes(marker)) > 1 else ())
    else:
        prompt, fences = _sweep(model, part, before, request, changes), frozenset[int]()
    return part.layout(prompt, old, fences, as_old=True)


def _sweep(
    model: Loaded, part: EditedPart, before: str, request: InfillRequest, changes: Sequence[PastChange]
) -> list[int]:
    if not isinstance(model, LoadedFim) or (separator := model.fim.file_sep) is None:
        raise RequestError(f"the model {model.name} has no token that separates files, so it rewrites nothing")
    encode = model.tokenizer.encode
    name = PurePath(request.path).name or "file"
    current = before + part.old
    sections = [(snippet.path, snippet.text) for snippet in request.snippets]
    sections += [(f"{PurePath(one.path).name}.diff", f"original:\n{one.old}\nupdated:\n{one.new}") for one in changes]
    sections += [(f"original/{name}", _as_it_was(current, name, changes)), (f"current/{name}", current)]
    prompt = [*model.fim.start]
    for title, content in sections:
        prompt += [separator, *encode(f"{title}\n{content.rstrip()}\n")]
    return [*prompt, separator, *encode(f"updated/{name}\n"), *encode(before + part.indentation[:-1])]


def _as_it_was(current: str, name: str, changes: Sequence[PastChange]) -> str:
    """Some lines of the file ``name`` before its last change, as far as that lies in them."""
    change = next((one for one in reversed(changes) if PurePath(one.path).name == name), None)
    if change is None:
        return current
    place = f"\n{current}".rfind(f"\n{change.new}\n") if change.new else -1
    return current if place < 0 else splice(current, [(place, place + len(change.new), change.old)])


def _zeta(
    model: LoadedFim, part: EditedPart, before: str, after: str, request: InfillRequest, changes: Sequence[PastChange]
) -> list[int]:
    names, fim, encode = model.tokenizer.vocabulary.tokens, model.fim, model.tokenizer.encode
    if not fim.suffix_first or FILE not in names:
        raise RequestError(f"the model {model.name} has not the tokens of Zeta's format, so it rewrites nothing")
    sections = [(one.path, one.text.rstrip()) for one in request.snippets]
    sections.append(("edit_history", "\n".join(map(_diff, changes))))
    prompt = [*fim.start, fim.suffix, *encode(f"{after.rstrip()}\n"), fim.prefix]
    for title, content in sections:
        prompt += [names.index(FILE), *encode(f"{title}\n{content}\n\n")]
    place = _changed_until(part.old, before, changes)
    marked = f"{FIRST}{part.old[:place]}{CURSOR}{part.old[place:]}{NEXT}\n"
    prompt += [names.index(FILE), *encode(f"{request.path or 'file'}\n{before}{marked}"), fim.middle]
    return [*prompt, *encode(f"{FIRST}{part.indentation[:-1]}")]


def _diff(change: PastChange) -> str:
    """A change as Zed's history shows it: a unified diff, here without the numbers of its lines."""
    path = PurePath(change.path).name
    lines = diff.unified(change.old, change.new, f"a/{path}", f"b/{path}").split("\n")
    return "\n".join(line for line in lines if not line.startswith("@@"))


def _changed_until(old: str, before: str, changes: Sequence[PastChange]) -> int:
    """Where the last changed line ends in the ``old`` part, in characters: the cursor; 0 where it is elsewhere."""
    was, new = (text.splitlines() for text in ((changes[-1].old, changes[-1].new) if changes else ("", "")))
    new = new[: len(new) - diff.num_common_end(was, new)]
    place = f"\n{before}{old}".rfind("\n" + "\n".join(new) + "\n") if new else -1
    return max(place + len("\n".join(new)) - len(before), 0) if place >= 0 else 0


def header(tokenizer: TextTokenizer, fim: FimTokens, change: PastChange, indentation: str) -> list[int]:
    """The tokens between the prompt of a fill and the lines: the change of some lines, a mark, and an indentation.

    The ``indentation`` is that of the first line that is rewritten, without its last character.
    """
    assert fim.file_sep is not None
    old, new = change.bare.old.split("\n"), change.bare.new.split("\n")
    first, last = common_ends(old, new)
    was, made = ("\n".join(lines[first : len(lines) - last]) for lines in (old, new))
    name = PurePath(change.path).name or "file"
    done = tokenizer.encode(f"{name}.diff\noriginal:\n{was}\nupdated:\n{made}\n")
    marked = [fim.file_sep, *done, fim.file_sep, *tokenizer.encode(f"updated/{name}\n")]
    return marked + tokenizer.encode(indentation)


def rows_layout(model: LoadedFim, session: DocumentSession, part: EditedPart, change: PastChange) -> Layout:
    """The layout in which edit rows rewrite a part after a ``change``.

    The part's text is the draft. The prompt begins as that of the last fill of the document did. Raises RequestError
    where the part is too long.
    """
    text, start, tokenizer = part.document, part.region.start - len(part.before.encode()), model.tokenizer
    before = session.window.before(text[:start], tokenizer).decode()
    # The window ends where it did for a cursor at the end of the line above, so that what was read of it stays.
    end = len(text[:start].removesuffix(b"\n").removesuffix(b"\r"))
    after = session.window.after(text[end:], tokenizer)[start - end :].decode()
    opening = session.opening or tuple(prompt_head(model.fim, tokenizer, (), ""))
    texts = (tokenizer.encode(with_feeds(one)) for one in (before, after))
    own = Header(EDIT, tuple(header(tokenizer, model.fim, change, part.indentation[:-1])))
    gap = Gap(0, part.indentation[-1:].encode())
    return Layout(opening, tuple(map(tuple, texts)), (gap,), (tuple(part.draft(tokenizer)),), header=own)
