"""The project that a document belongs to: its drafts and snippets, kept up to date while requests are answered.

It may import ``prior`` and ``snippets`` and what these may import, and no torch.
"""
