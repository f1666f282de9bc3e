"""Open diffusion checkpoints: a guess of all gaps in parallel, any slot in any order, as published with each family.

The constraint then reads a finished guess from the left; what it refuses is denoised again.
"""
