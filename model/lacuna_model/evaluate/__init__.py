"""Evaluations: measure the quality, the speed and the validity of fills, and compare engines.

It may import every package of ``lacuna_model`` and ``lacuna_kernels``; no other package of ``lacuna_model`` imports it.
"""
