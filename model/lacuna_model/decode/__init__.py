"""The loop: fills as lists of tokens, what it asks of a model (`fill.Reader`), drawing, candidates, confidence."""
