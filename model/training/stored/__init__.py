"""The corpus on disk: its package list, documents and manifest.

It imports no other package of the corpus.
"""
