"""Which files of a workspace may be read, and reading them safely: ignore files, secrets, links, limits.

It may import ``core`` and ``hub``.
"""
