"""What is fitted on held-out code: the confidence of suggestions."""
