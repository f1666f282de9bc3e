"""Next edit suggestions: what the user has changed last, which place would follow, and whether to offer it.

It may import ``connection``, ``client`` and ``document`` of this package.
"""
