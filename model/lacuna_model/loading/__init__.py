"""Weights from files: GGUF and safetensors in, the form that passes read out, kept in the user's cache.

It may import ``core``, ``hub``, ``tokens`` and ``network``.
"""
