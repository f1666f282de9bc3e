"""Recognises models that were made for next edits: Sweep's open weights."""

import re
from pathlib import Path

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading.gguf_reader import first_texts

# Where a GGUF file says what model it holds.
FIELDS = ("general.name", "general.basename", "general.finetune", "general.source.huggingface.repository")
_NAME = re.compile(r"sweep.*next.?edit|next.?edit.*sweep", re.IGNORECASE | re.DOTALL)


def made_for_edits(path: Path) -> bool:
    """Whether the GGUF file or folder at ``path`` holds Sweep's next-edit model, by its metadata or its name."""
    if _NAME.search(path.name):
        return True
    if not path.is_file():
        return False
    try:
        return any(map(_NAME.search, first_texts(path, FIELDS)))
    except WeightsError:
        return False
