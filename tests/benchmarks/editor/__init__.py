"""Measures the real language server with the real engine: a person who types, and edits that follow an edit.

``typist`` is the LSP client that types.
"""
