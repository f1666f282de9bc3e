"""How likely a fill is what is wanted, line by line: what the model said of its tokens when they were committed.

The sum of their log-probabilities tells right fills from wrong ones, but is too sure of itself at both ends, so it is
calibrated (Platt scaling, as in arXiv 1706.04599) on gaps as they are when a line is being typed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from lacuna_model.core.constraint import TokenText

# What a token counts that the model did not offer: the constraint, or what led out of a loop, put it there.
UNKNOWN_LOG_PROB = -12.0
# Less than this makes no difference.
LEAST = -60.0


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The log-odds of a fill: ``constant``, and what each nat that the model said of its tokens counts (``slope``)."""

    constant: float
    slope: float

    def probability(self, log_prob: float) -> float:
        """How likely a text is the wanted one whose tokens had this log-probability together, in 0..1."""
        return 1 / (1 + math.exp(-self.constant - self.slope * max(log_prob, LEAST)))

    def log_prob(self, probability: float) -> float:
        """The log-probability that :meth:`probability` takes to this one."""
        return (math.log(probability / (1 - probability)) - self.constant) / self.slope


@cache
def fitted() -> Calibration:
    """The numbers that ship with the package; ``lacuna train confidence`` fits them."""
    text = resources.files("lacuna_model.decode").joinpath("confidence.json").read_bytes()
    return msgspec.json.decode(text, type=Calibration)


def of_lines(
    fill: str, canvas: Sequence[int], log_probs: Mapping[int, float], prefix: bytes, tokens: TokenText
) -> tuple[float, ...]:
    """For every line of a delivered ``fill``: how likely it is right up to the end of that line.

    ``canvas`` are the tokens that the loop ended with, the first of which repeat the healed ``prefix``. ``log_probs``
    has the log-probability of each by its place, and after the last that of the end. Where the fill is not what the
    canvas says, the constraint has made it, and it is as likely as a token that was never offered.
    """
    text = fill.encode()
    pieces = [tokens.token_bytes(token) for token in canvas]
    written = b"".join(pieces)[len(prefix) :]
    agreed = next((at for at, (own, other) in enumerate(zip(text, written, strict=False)) if own != other), len(text))
    known = min(agreed, len(written))
    found = []
    for end in _line_ends(text):
        total = _log_prob_until(end, pieces, log_probs, len(prefix)) + (UNKNOWN_LOG_PROB if end > known else 0.0)
        found.append(fitted().probability(total))
    return tuple(found)


def _line_ends(text: bytes) -> Iterator[int]:
    """Where each line of a text ends, in front of its newline; a text has at least one line."""
    end = text.find(b"\n")
    while end >= 0:
        yield end
        end = text.find(b"\n", end + 1)
    if not text.endswith(b"\n"):
        yield len(text)


def _log_prob_until(end: int, pieces: Sequence[bytes], log_probs: Mapping[int, float], prefix: int) -> float:
    """The log-probability of the tokens up to an offset of a fill, and of the line or the fill ending there."""
    position, total = -prefix, 0.0
    for place, piece in enumerate(pieces):
        if position > end or (position == end and b"\n" not in piece):
            return total
        total += log_probs.get(place, 0.0)
        position += len(piece)
        if position > end:
            return total
    return total + log_probs.get(len(pieces), 0.0)
