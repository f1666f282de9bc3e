"""Odds: how much likelier something is than its contrary."""


def odds_of(probability: float) -> float:
    """The odds of a probability below 1."""
    return probability / (1 - probability)


def with_odds(probability: float, factor: float) -> float:
    """The probability with ``factor`` times the odds."""
    return factor * probability / (1 - probability + factor * probability)
