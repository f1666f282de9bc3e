"""Text that every encoding, tokenizer and terminal can take: no surrogate stands alone."""

from typing import Any, TypeVar

Value = TypeVar("Value")


def well_formed(value: Value) -> Value:
    """``value`` with U+FFFD in place of every lone surrogate in its strings, lists, tuples and dictionaries.

    JSON has lone surrogates where a client cut a character in two, Python where a file name or an argument is not
    UTF-8 (PEP 383). Two surrogates that JSON escaped one by one are joined.
    """
    return _well_formed(value)  # type: ignore[no-any-return]


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    elif isinstance(value, (list, tuple)):
        return type(value)(map(_well_formed, value))
    elif isinstance(value, dict):
        return {_well_formed(name): _well_formed(one) for name, one in value.items()}
    return value
