"""Completions that the grammar itself tells: what to write between the text before a gap and its suffix.

It may import ``lr``, ``text`` and ``languages``.
"""
