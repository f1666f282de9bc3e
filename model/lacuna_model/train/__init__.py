"""Builds the corpus: fetches packages, filters and deduplicates files, and writes training and held-out documents.

The package ``evaluate`` cuts held-out cases from it. It may import every package of ``lacuna_model`` but ``evaluate``.
"""
