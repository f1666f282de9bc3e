"""Edits: what of a region is rewritten, how the model is told to, and what the new text must not lose."""
