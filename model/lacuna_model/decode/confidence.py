"""The probability that a fill in closed delivery is right, line by line, from the log-probabilities of its tokens.

Their sum separates right fills from wrong ones but is overconfident at both ends, so it is calibrated (Platt scaling,
as in arXiv 1706.04599). In open delivery the gate decides (:mod:`.gate`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from lacuna_model.core.constraint import UNKNOWN_LOG_PROB, TokenText
from lacuna_model.text.diff import num_common

# Lower sums make no difference.
LEAST = -60.0


# The log-odds that a text is right are CONSTANT + SLOPE * the log-probability (nats) of its tokens; fitted at gaps in
# whole files.
CONSTANT, SLOPE = 2.1334, 1.0307


def probability(log_prob: float) -> float:
    """The probability, in 0..1, that a text is right whose tokens have this summed log-probability."""
    return 1 / (1 + math.exp(-CONSTANT - SLOPE * max(log_prob, LEAST)))


def log_prob(probability: float) -> float:
    """The log-probability for which :func:`probability` returns this value."""
    return (math.log(probability / (1 - probability)) - CONSTANT) / SLOPE


def of_lines(
    fill: str,
    written: Sequence[int],
    log_probs: Mapping[int, float],
    prefix: bytes,
    tokens: TokenText,
) -> tuple[float, ...]:
    """For every line of a delivered ``fill``: the probability that it is right up to the end of that line.

    ``written`` are the tokens that the loop ended with; the first of them repeat the healed ``prefix``. ``log_probs``
    has the log-probability of each by its place, and after the last that of the end. From the first byte where the fill
    differs from them, the constraint wrote it, and ``UNKNOWN_LOG_PROB`` is added once.
    """
    text = fill.encode()
    pieces = [tokens.token_bytes(token) for token in written]
    own = b"".join(pieces)[len(prefix) :]
    known = num_common(text, own)
    found = []
    for end in _line_ends(text):
        total = _log_prob_until(end, pieces, log_probs, len(prefix)) + (UNKNOWN_LOG_PROB if end > known else 0.0)
        found.append(probability(total))
    return tuple(found)


def _line_ends(text: bytes) -> Iterator[int]:
    """The offset of each line's end, before its newline; a text has at least one line."""
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
