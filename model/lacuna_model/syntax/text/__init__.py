"""Text analysis without a parse: open brackets, strings, tags and columns, and texts that close them.

The package may import ``languages`` and ``core``.
"""
