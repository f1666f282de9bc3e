"""Plain text, without a grammar: its characters, lines, columns, brackets, differences, and replaced ranges."""
