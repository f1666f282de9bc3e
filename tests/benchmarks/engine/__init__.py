"""Benchmarks of speed: passes, kernels, drafts, llama.cpp, the index, suffixes, and how typed text changes fills."""
