"""Turns text into token ids and back, and finds the tokens that begin with given bytes.

It may import ``core``.
"""
