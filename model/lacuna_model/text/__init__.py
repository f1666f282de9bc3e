"""Plain text, without a grammar: its characters, lines, columns, brackets, differences, and ranges that are replaced.

This package imports no other package.
"""
