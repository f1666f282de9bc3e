"""Benchmarks of speed: kernels, drafts, and llama.cpp beside it."""
