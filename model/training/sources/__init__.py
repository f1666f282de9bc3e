"""Registries that packages come from: PyPI, npm and Debian, fetched by their own tools.

It may import ``accepted`` and ``stored`` of this package.
"""
