"""Trains additions to rows of tokens: those behind the header of an edit, and those of a fill."""
