"""Benchmarks of the syntax constraint: the true fills it admits, what it does to noise, and files with errors.

They need no model: one that is simulated stands for it.
"""
