"""The loop: fills as lists of tokens, what it asks of a model, drawing, candidates, and the confidence of a fill.

It may import ``core`` and ``tokens``. It knows the model only through the protocol ``Reader``.
"""
