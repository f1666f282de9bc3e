"""The transformer: its shape, layers, linears, key-value store, and the device that it runs on.

It may import ``core``, ``hub`` and the kernels.
"""
