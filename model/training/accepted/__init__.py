"""Rules for files of the corpus: accepted languages and accepted licences.

It may import only ``stored`` of this package.
"""
