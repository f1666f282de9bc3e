"""Benchmarks of the syntax constraint: the true fills it admits, what it does to noise, and files with errors.

It needs no model: synthetic marginals stand for one.
"""
