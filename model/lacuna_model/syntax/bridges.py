"""Ways over from the brackets that are open behind a fill to those that the text behind its gap needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from lacuna_model.syntax.languages import Lexicon
from lacuna_model.syntax.scan import Bracket

MOST_BRIDGES = 2
OPENERS = {b")": b"(", b"]": b"[", b"}": b"{", b">": b"<"}


@dataclass(frozen=True, slots=True)
class Bridge:
    """The closers for what must not stay open, the openers for what the right side closes, and how many stay."""

    closers: bytes
    openers: list[bytes]
    kept: int = 0


def bridges(
    stack: Sequence[Bracket], target: Sequence[Bracket], lexicon: Lexicon, *, most: int, statement: bool = False
) -> list[Bridge]:
    """Ways over from the brackets that are open behind a fill to those that the text behind it needs.

    Both are outermost first; what they share stays, ``most`` of it in the first way. For a new ``statement`` its
    innermost bracket must be a block. The second way ends a block and begins another, for a block may be of the wrong
    kind.
    """
    own, due = [bracket.closer for bracket in stack], [bracket.closer for bracket in target]
    pairs = enumerate(zip(own, due, strict=False))
    kept = next((place for place, (mark, other) in pairs if mark != other), min(len(own), len(due)))
    while statement and kept and own[kept - 1] in (b")", b"]"):
        kept -= 1
    counts = list(dict.fromkeys([min(kept, most), *range(kept, max(kept - MOST_BRIDGES, -1), -1)]))[:MOST_BRIDGES]
    return [
        Bridge(_closing(stack[count:], len(due) - count, lexicon), _opening(due[count:], lexicon), count)
        for count in counts
    ]


def _closing(brackets: Sequence[Bracket], opened: int, lexicon: Lexicon) -> bytes:
    """What closes brackets, given outermost first, with what must follow where the block of a word ends.

    Nested brackets that are ``opened`` behind them serve as the value of a type.
    """
    closers = []
    for bracket in reversed(brackets):
        closers.append(bracket.closer if len(bracket.closer) == 1 else b"\n" + bracket.closer)
        if bracket.closer == b"}":
            closers.append(
                next(
                    (tail for word, tail, no in lexicon.tails if word in bracket.words and bracket.words[0] not in no),
                    b"",
                )
            )
    text = b"".join(closers)
    return text.removesuffix(b"{}") if opened > 1 else text


def _opening(marks: Sequence[bytes], lexicon: Lexicon) -> list[bytes]:
    words = {closer: head for _, closer, head in reversed(lexicon.blocks)}
    return [OPENERS.get(mark) or words[mark] for mark in marks]
