"""Selects the documents of a package: checks licences, generated files, duplicates and benchmark texts.

It may import ``sources``, ``accepted`` and ``stored`` of this package.
"""
