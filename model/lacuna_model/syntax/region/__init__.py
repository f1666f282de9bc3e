"""One gap: its slots, its fills as text, and what its region asks beside the syntax of the file.

It may import ``text``, ``languages`` and ``core``.
"""
