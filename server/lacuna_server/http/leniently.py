"""Decodes JSON as existing clients send it, with lone surrogates and with integers written as ``4.0``."""

import json
from typing import Any

import msgspec

from lacuna_model.core.characters import well_formed

# Larger floats stay floats: no integer field has room for them.
LARGEST = 2.0**63


def decode(data: bytes) -> Any:
    """Decode JSON. Raises ValueError where ``data`` is not JSON."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        if "surrogate" not in str(error):
            raise
        found = well_formed(json.loads(data))
    return {name: _whole(value) for name, value in found.items()} if isinstance(found, dict) else found


def _whole(value: Any) -> Any:
    """Return an integer for a float that has an integer value, otherwise the value itself."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST else value
