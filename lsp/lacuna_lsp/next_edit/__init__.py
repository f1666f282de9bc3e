"""Next edit suggestions: what the user has changed last, which place would follow, and whether to offer it.

It may import ``engine``, ``client`` and ``documents`` of this package.
"""
