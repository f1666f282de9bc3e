"""What a region demands of its fill besides the syntax of the file: patterns, schemas and words.

It may import ``check``, ``text``, ``languages``, ``tokens`` and ``core``.
"""
