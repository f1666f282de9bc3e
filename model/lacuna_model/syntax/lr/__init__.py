"""LR tables of a grammar, read from its wheel: its lexer, and parse stacks.

It may import ``languages`` and ``core``.
"""
