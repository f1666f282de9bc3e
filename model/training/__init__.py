"""Builds the corpus: fetches packages, filters and deduplicates files, and writes training and held-out documents.

``python -m training`` runs it. The benchmarks cut held-out cases from the corpus; no package that ships imports it.
"""
