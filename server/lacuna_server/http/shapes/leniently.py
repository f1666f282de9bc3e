"""JSON as existing clients send it: halves of surrogate pairs, and whole numbers written as ``4.0``."""

import json
from typing import Any

import msgspec

# More digits than this are no count, and none of ours has room for them.
LARGEST = 2.0**63


def decode(data: bytes) -> Any:
    """The value that ``data`` spells; raises ValueError where it is no JSON."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        if "surrogate" not in str(error):
            raise
        found = _mended(json.loads(data))
    return {name: _whole(value) for name, value in found.items()} if isinstance(found, dict) else found


def _mended(value: Any) -> Any:
    """The value with U+FFFD for every half of a surrogate pair, which stands for no character."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_mended(one) for one in value]
    if isinstance(value, dict):
        return {_mended(name): _mended(one) for name, one in value.items()}
    return value


def _whole(value: Any) -> Any:
    """An integer for a number that is one."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST else value
