"""Decodes JSON as existing clients send it, with halves of surrogate pairs and with integers written as ``4.0``.

It is decoded by its type, so that what the type does not name takes little time and no memory.
"""

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

# Halves of surrogate pairs, after whatever else there is before them: plain text, other escapes, and pairs.
_PAIR = rb"\\u[dD][89abAB]..\\u[dD][c-fC-F].."
_HALVES = re.compile(
    rb"((?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])|%b){1,1000}+)|(?:(?!%b)\\u[dD][89a-fA-F]..){1,1000}+" % (_PAIR, _PAIR),
    re.DOTALL,
)
# In a text with more such pieces, not all halves are replaced.
MAX_PIECES = 20_000


def decode(data: bytes, kind: type[T]) -> T:
    """Decode JSON. Raises msgspec.MsgspecError where ``data`` is not JSON or not of this kind, and RecursionError."""
    try:
        return _decode(data, kind)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError) or (mended := _mended(data)) == data:
            raise
    return _decode(mended, kind)


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
    return msgspec.json.decode(data, type=kind, strict=False)


def _mended(data: bytes) -> bytes:
    """Replace every half of a surrogate pair in JSON by U+FFFD."""
    return _HALVES.sub(lambda found: found[1] or rb"\ufffd" * (len(found[0]) // 6), data, MAX_PIECES)
