"""One gap: its slots, its fills as text, and the rules of its region besides the syntax of the file.

It may import ``check``, ``text``, ``languages`` and ``core``.
"""
