"""LR tables of a grammar, read from its wheel: its lexer, parse stacks, and the shortest texts between states.

It may import ``languages`` and ``hub``.
"""
