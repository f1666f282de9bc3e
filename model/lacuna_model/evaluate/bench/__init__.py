"""Benchmarks of speed and of the syntax constraint: passes, kernels, llama.cpp, the index, noise and unclean files.

It may import every package of ``evaluate`` but ``fitting``.
"""
