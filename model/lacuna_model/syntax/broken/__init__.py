"""Files that are unfinished or broken whatever the gaps hold.

The package may import ``check``, ``lr``, ``text`` and ``languages``.
"""
