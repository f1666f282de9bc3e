"""Searches for complete fills of all gaps that are valid together.

It may import every other package of ``syntax``.
"""
