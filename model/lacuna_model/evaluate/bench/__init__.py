"""Benchmarks of time and of the constraint: passes, kernels, peers, noise, files that are not clean."""
