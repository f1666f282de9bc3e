"""Inline suggestions at a cursor: when to request one, which are cached, and how a fill becomes an item."""
