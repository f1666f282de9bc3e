"""Trains the drafter of a model: the loop that fits it to hidden states of code.

It may import the corpus's stored files and every package of the model side.
"""
