"""Trains a model's mask rows: rows that denoise several next tokens in one pass.

What a GPU machine runs (`base`, `feeding`, `loop`, `masks/fitting`) reads neither models nor the corpus, and needs none
of the packages for that; `training` and `targets` do.
"""
