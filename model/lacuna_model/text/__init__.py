"""Plain text, without a grammar: its characters, lines, columns, brackets, differences, and ranges that are replaced.

Every package may import it. It imports no other one.
"""
