"""Text to token ids and back, and which tokens begin with given bytes.

It may import ``core``.
"""
