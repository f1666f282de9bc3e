"""Trains the drafter of a model: hidden states of code that the model reads, and the loop that fits them.

It may import the corpus's stored files and everything below `train`.
"""
