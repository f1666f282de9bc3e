"""Inline suggestions at a cursor: when to request one, which are cached, and how a fill becomes an item.

It may import ``connection``, ``client`` and ``document`` of this package.
"""
