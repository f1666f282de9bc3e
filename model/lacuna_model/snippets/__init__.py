"""Snippets that the model reads besides the open file: definitions, recent edits, similar code and diagnostics."""
