"""Trains a model's mask rows: rows that denoise several next tokens in one pass.

Modules that a GPU machine runs (`base`, `rows`, `fitting`) need torch alone; the others read models and the corpus.
"""
