"""Suggestions at a cursor: when to ask, what is kept, how a fill becomes an item."""
