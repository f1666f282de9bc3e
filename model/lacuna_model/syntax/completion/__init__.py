"""Completions found in the grammar's LR tables: text that connects the beginning of a fill to the suffix of its gap.

It may import ``lr``, ``text`` and ``languages``.
"""
