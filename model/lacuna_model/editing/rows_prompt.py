"""The prompt in which edit rows rewrite lines: the one that fills the gap behind a change, then the change.

The header is what was just done, and the name of what comes. Behind it the model writes nothing where nothing is to do,
or else the lines anew, as far as their first change goes. Rows from the header on have an addition of their own
(``network/masks.py``), so the rows before it are those of a fill in the same place.
"""

from pathlib import PurePath

from lacuna_model.core.context import Gap, Header, Layout, TextTokenizer
from lacuna_model.core.params import PastChange, Region
from lacuna_model.editing.part import EditedPart
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.network.masks import EDIT
from lacuna_model.sessions import DocumentSession
from lacuna_model.text.diff import common_ends
from lacuna_model.tokens.tokenizer import FimTokens


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


def rows_layout(
    model: LoadedFim, session: DocumentSession, part: EditedPart, text: bytes, region: Region, change: PastChange
) -> Layout:
    """The layout in which edit rows rewrite ``part``, which is now the ``region`` of ``text``, after a ``change``.

    The part's text is the draft. The prompt begins as that of the last fill of the document did. Raises RequestError
    where the part is too long.
    """
    start, tokenizer = region.start - len(part.before.encode()), model.tokenizer
    before = session.window.before(text[:start], tokenizer).decode()
    # The window ends where it did for a cursor at the end of the line above, so that what was read of it stays.
    end = len(text[:start].removesuffix(b"\n").removesuffix(b"\r"))
    after = session.window.after(text[end:], tokenizer)[start - end :].decode()
    opening = session.opening or tuple(prompt_head(model.fim, tokenizer, (), ""))
    texts = (tokenizer.encode(one.replace("\r\n", "\n")) for one in (before, after))
    own = Header(EDIT, tuple(header(tokenizer, model.fim, change, part.indentation[:-1])))
    gap = Gap(0, part.indentation[-1:].encode())
    return Layout(opening, tuple(map(tuple, texts)), (gap,), (tuple(part.draft(tokenizer)),), header=own)
