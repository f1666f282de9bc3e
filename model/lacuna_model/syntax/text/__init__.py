"""What can be told of a text without a parse: open brackets, strings, tags, columns, and how to close them.

It may import ``languages`` and ``core``.
"""
