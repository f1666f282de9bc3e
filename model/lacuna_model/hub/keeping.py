"""What the user's cache keeps only to be found sooner; where it cannot be kept that is said once, and done without."""

import contextlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

from lacuna_model.hub.models import CACHE_VARIABLE
from lacuna_model.hub.ownership import make_private

# Files of one kind that stay where nobody says how many: two checkouts are used in turn.
MOST_KEPT = 2

log = logging.getLogger(__name__)


def keep(file: Path, alike: str, write: Callable[[Path], None], *, most: int = MOST_KEPT) -> None:
    """Has ``file`` made by ``write``, which may raise OSError, in a folder that is there by then.

    Of the files beside it that are ``alike``, a pattern for their names, the ``most`` latest stay.
    """
    try:
        make_private(file.parent)
        write(file)
    except OSError as error:
        _say(file.parent, error.strerror or str(error))
        return
    with contextlib.suppress(OSError):  # another process may clear up as well
        written = sorted(file.parent.glob(alike), key=lambda one: one.stat().st_mtime_ns, reverse=True)
        for older in written[most:]:
            older.unlink(missing_ok=True)


@cache
def _say(folder: Path, reason: str) -> None:
    log.warning(
        "%s cannot be written to (%s): what it would keep is made anew at every start; %s names another folder",
        *(folder, reason, CACHE_VARIABLE),
    )
