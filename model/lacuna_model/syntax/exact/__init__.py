"""The exact test: whether a beginning of a fill can be completed to the suffix of its gap, and the cheapest completion.

It may import ``lr``. ``model/README.md`` explains it with an example.
"""
