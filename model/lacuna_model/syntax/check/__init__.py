"""Whether fills add an error to a document: its parse trees, rules that grammars lack, compilers, errors of before.

It may import ``completion``, ``lr``, ``text`` and ``languages``.
"""
