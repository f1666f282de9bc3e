"""Changes as blocks of old and new lines, in the form of Sweep's next-edit models: snippets of ``F.diff``."""

from collections.abc import Sequence
from pathlib import PurePath

from lacuna_model.core.params import Snippet

DIFF = ".diff"
_OLD, _NEW = "original:\n", "\nupdated:\n"


def as_block(path: str, old: str, new: str) -> Snippet:
    """Returns a change of the lines of a file as a snippet."""
    return Snippet(
        f"{PurePath(path).name}{DIFF}", f"{_OLD}{old.rstrip()}{_NEW}{new.rstrip()}", reason="a recent change"
    )


def old_and_new(snippet: Snippet) -> tuple[str, str]:
    """Returns the old and the new lines of a change; empty ones where the snippet has another form."""
    old, _, new = snippet.text.removeprefix(_OLD).partition(_NEW)
    return (old, new) if snippet.text.startswith(_OLD) else ("", "")


def deletes(snippets: Sequence[Snippet]) -> bool:
    """Whether the last change left fewer lines than there were."""
    changes = [old_and_new(one) for one in snippets if one.path.endswith(DIFF)]
    return bool(changes) and len(changes[-1][1].splitlines()) < len(changes[-1][0].splitlines())


def as_it_was(current: str, name: str, snippets: Sequence[Snippet]) -> str:
    """Returns some lines of the file ``name`` before its last change, as far as that lies in them."""
    changes = [old_and_new(one) for one in snippets if one.path == f"{name}{DIFF}"]
    if not changes:
        return current
    old, new = changes[-1]
    place = f"\n{current}".rfind(f"\n{new}\n") if new else -1
    return current if place < 0 else f"{current[:place]}{old}{current[place + len(new) :]}"
