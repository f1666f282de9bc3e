"""Refuses fills that a person would see in another order than a compiler reads them (Trojan Source)."""

from collections.abc import Callable, Iterable

import msgspec

from lacuna_model.core.params import InfillResult
from lacuna_model.text.characters import directions


def is_legible(fills: Iterable[str], document: Callable[[], str]) -> bool:
    """Whether fills bring no character that changes the order of text; those that the document has are its own."""
    brought = directions("".join(fills))
    return not brought or brought <= directions(document())


def legible(result: InfillResult, document: Callable[[], str]) -> InfillResult:
    """Returns a result without the candidates that are not legible; ``no_valid_fill`` where its first one is not."""
    if not is_legible(result.fills, document):
        named = ", ".join(f"U+{ord(one):04X}" for one in sorted(directions("".join(result.fills))))
        why = f"the text would be shown in another order than it is read, by {named}"
        return msgspec.structs.replace(result, status="no_valid_fill", message=why, alternatives=())
    others = tuple(fills for fills in result.alternatives if is_legible(fills, document))
    return msgspec.structs.replace(result, alternatives=others)
