"""The prompt in which edit rows rewrite lines: the one that fills the gap behind a change, then the change.

The header is what was just done, and the name of what comes. Behind it the model writes nothing where nothing is to do,
or else the lines anew. Rows from the header on have an addition of their own (``network/masks.py``), so the rows before
it are those of a fill in the same place.
"""

from pathlib import PurePath

from lacuna_model.core.params import PastChange
from lacuna_model.tokens.tokenizer import FimTokens, Tokenizer


def header(tokenizer: Tokenizer, fim: FimTokens, change: PastChange) -> list[int]:
    """The tokens between the prompt of a fill and the lines: the change of some lines, and a mark."""
    assert fim.file_sep is not None
    bare, name = change.bare, PurePath(change.path).name or "file"
    done = tokenizer.encode(f"{name}.diff\noriginal:\n{bare.old}\nupdated:\n{bare.new}\n")
    return [fim.file_sep, *done, fim.file_sep, *tokenizer.encode(f"updated/{name}\n")]
