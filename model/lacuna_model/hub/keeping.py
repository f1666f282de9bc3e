"""Writes optional files to the user's cache; a cache that cannot be written is reported once and not used."""

import contextlib
import logging
import time
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from pathlib import Path

from lacuna_model.hub.atomic import make_private
from lacuna_model.hub.models import CACHE_VARIABLE

# Files of one kind that are kept by default, enough for two checkouts used in turn.
MAX_KEPT = 2

log = logging.getLogger(__name__)


def keep(file: Path, alike: str, write: Callable[[Path], None], *, most: int = MAX_KEPT, most_bytes: int = 0) -> None:
    """Make ``file`` with ``write``, which may raise OSError, after creating its folder.

    Of the files in its folder whose names match the pattern ``alike``, the ``most`` latest are kept, and those before
    them that fit into ``most_bytes`` with all that are later.
    """
    try:
        make_private(file.parent)
        write(file)
    except OSError as error:
        _say(file.parent, error.strerror or str(error))
        return
    with contextlib.suppress(OSError):  # another process may remove files too
        written = sorted(file.parent.glob(alike), key=lambda one: one.stat().st_mtime_ns, reverse=True)
        sizes = accumulate(one.stat().st_size for one in written)
        for older, size in list(zip(written, sizes, strict=True))[most:]:
            if size > most_bytes:
                older.unlink(missing_ok=True)


def prune(kept: Path, *, most: int, most_seconds: float) -> None:
    """Remove the files beside one that is ``kept``, with its suffix, that were not used for so long, or are too many.

    With it, the ``most`` that were used last stay.
    """
    with contextlib.suppress(OSError):  # another process may remove files too
        others = sorted((one.stat().st_mtime, one) for one in kept.parent.glob(f"*{kept.suffix}") if one != kept)
        for number, (changed, one) in enumerate(reversed(others), start=1):
            if number >= most or time.time() - changed > most_seconds:
                one.unlink(missing_ok=True)


@cache
def _say(folder: Path, reason: str) -> None:
    log.warning(
        "%s cannot be written to (%s): what it would keep is made anew at every start; %s names another folder",
        *(folder, reason, CACHE_VARIABLE),
    )
