"""Recognises models that were made for next edits by their open weights: Sweep's, and Zed's Zeta 2.1."""

import re
from pathlib import Path
from typing import Literal

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading.gguf_reader import first_texts

# The prompt in which a model rewrites lines because of the last changes.
EditFormat = Literal["sweep", "zeta"]
# Where a GGUF file says what model it holds.
FIELDS = ("general.name", "general.basename", "general.finetune", "general.source.huggingface.repository")
_NAMES: dict[EditFormat, re.Pattern[str]] = {
    "sweep": re.compile(r"sweep.*next.?edit|next.?edit.*sweep", re.IGNORECASE | re.DOTALL),
    "zeta": re.compile(r"(?:^|[^a-z])zeta[-_. ]?2[._]1(?!\d)", re.IGNORECASE),
}


def edit_format(path: Path) -> EditFormat | None:
    """The format of the next-edit model in the GGUF file or folder at ``path``, by its metadata or its name.

    None for other models.
    """
    if (known := _named(path.name)) or not path.is_file():
        return known
    try:
        return next(filter(None, map(_named, first_texts(path, FIELDS))), None)
    except WeightsError:
        return None


def _named(name: str) -> EditFormat | None:
    return next((known for known, pattern in _NAMES.items() if pattern.search(name)), None)
