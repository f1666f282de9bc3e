"""Reads weights from GGUF and safetensors files, and keeps their prepared form in the user's cache.

It may import ``core``, ``hub``, ``tokens`` and ``network``.
"""
