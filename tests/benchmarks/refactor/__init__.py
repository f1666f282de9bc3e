"""Refactors of whole packages, and how sure their fills are: costs and correctness."""
