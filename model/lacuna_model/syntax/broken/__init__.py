"""Files that are unfinished or broken whatever the gaps hold.

The package may import ``check``, ``completion``, ``lr``, ``text`` and ``languages``.
"""
