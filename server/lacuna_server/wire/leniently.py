"""Decodes JSON as existing clients send it, with lone surrogates and with integers written as ``4.0``."""

import json
from typing import Any

import msgspec

# Larger floats stay floats: no integer field has room for them.
LARGEST = 2.0**63


def decode(data: bytes) -> Any:
    """Decode JSON. Raises ValueError where ``data`` is not JSON."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        if "surrogate" not in str(error):
            raise
        found = _mended(json.loads(data))
    return {name: _whole(value) for name, value in found.items()} if isinstance(found, dict) else found


def _mended(value: Any) -> Any:
    """Replace every lone surrogate in the strings of a value by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_mended(one) for one in value]
    if isinstance(value, dict):
        return {_mended(name): _mended(one) for name, one in value.items()}
    return value


def _whole(value: Any) -> Any:
    """Return an integer for a float that has an integer value, otherwise the value itself."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST else value
