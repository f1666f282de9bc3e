"""Files that are unfinished or broken whatever the gaps hold.

It may import ``check`` and ``text``.
"""
